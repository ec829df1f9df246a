"""The verbs of the workshop on the command line."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click

from gpuworkshop import settings as settings_module
from gpuworkshop.errors import StepFailed
from gpuworkshop.processes import groups
from gpuworkshop.processes.locks import locked
from gpuworkshop.processes.supervisor import supervise as run_supervisor
from gpuworkshop.workshop.verdict import Verdict


@click.command()
def up() -> None:
    """Bring up the lab and JupyterLab, wait until both are healthy, and print the address."""
    from gpuworkshop.workshop import copies, jupyter, lessons
    from gpuworkshop.workshop.session import Workshop

    settings = settings_module.load()
    if settings.target != "lab":
        click.echo(f"TARGET is {settings.target}, and this version has only the lab, which starts now")
    running = {s.name for s in groups.status(settings) if s.state == "healthy"}
    ws = Workshop.open("lab", settings)
    with locked(settings.run / "up.lock"):  # a second `up` finds the pods with their history
        services = list(ws.target.up())
        pods = ws.step("three-pods")
        if not pods.check().ok:
            _insist(pods.apply())
            pods.give_history(lessons.LESSONS[0].history_s)
    for line in copies.refresh(settings):
        click.echo(line)
    services += groups.ensure(jupyter.GROUP, settings)
    for service in services:
        click.echo(
            f"{service.name}: {'already runs' if service.name in running else 'healthy'} at {service.url}"
        )
    url = next(s.url for s in services if s.name == "jupyterlab")
    click.echo(f"\nOpen JupyterLab:\n{jupyter.address(settings, url)}")


@click.command()
def down() -> None:
    """End everything that the workshop started here; notebooks and stored samples stay."""
    groups.stop(settings_module.load())


@click.command()
@click.option("--json", "as_json", is_flag=True, help="for programs")
def status(as_json: bool) -> None:
    """What runs, and whether it is healthy."""
    services = groups.status(settings_module.load())
    if as_json:
        rows = [{"name": s.name, "state": s.state, "url": s.url, "pid": s.pid} for s in services]
        click.echo(json.dumps({"services": rows}))
        return
    for service in services:
        line = f"{service.name:24} {service.state:11} {service.url or '':28} {service.detail}"
        click.echo(line.rstrip())


@click.command()
@click.argument("group")
def supervise(group: str) -> None:
    """Keep the services of GROUP running until told to end (`up` starts this)."""
    from gpuworkshop.targets import supervised_groups
    from gpuworkshop.workshop import jupyter

    settings = settings_module.load()
    builders = {**supervised_groups(), jupyter.GROUP: jupyter.build}
    if group not in builders:
        raise click.BadParameter(f"{group!r} is none of {', '.join(builders)}")
    run_supervisor(group, lambda: builders[group](settings), settings)


@click.command("catch-up")
@click.argument("notebook")
def catch_up(notebook: str) -> None:
    """Bring the world to where NOTEBOOK starts, for example prometheus-live."""
    from gpuworkshop.workshop.session import Workshop

    verdict = Workshop.open().catch_up(notebook)
    click.echo(str(verdict))
    _insist(verdict)


@click.command()
@click.option("--target", default=None, help="lab is the default; TARGET in .env sets another")
@click.argument("notebooks", nargs=-1)
def rehearse(target: str | None, notebooks: Sequence[str]) -> None:
    """Run the notebooks (default: all) headless on copies, and write the report."""
    from gpuworkshop.workshop import lessons, rehearsal
    from gpuworkshop.workshop.session import Workshop

    settings = settings_module.load()
    chosen = [lessons.find(name) for name in notebooks] or list(lessons.LESSONS)
    ws = Workshop.open(target, settings)
    was_up = ws.step("lab").check().ok
    try:
        ws.target.up()
        results = rehearsal.rehearse(chosen, settings)
    finally:
        if not was_up:
            ws.target.down()
    seconds = sum(r.seconds for r in results)
    click.echo(
        f"{len(results)} notebooks ran in {seconds:.0f} s: {settings.state / 'rehearsal' / 'report.html'}"
    )


def _insist(verdict: Verdict) -> None:
    if not verdict.ok:
        raise StepFailed(verdict.seen, step=verdict.step, todo=verdict.todo)

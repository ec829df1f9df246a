"""`gpuworkshop VERB`: one verb a thing a person does.

This file is only the table of verbs. Each is a click command in the room that does the work, and is
imported when it is called, so that `gpuworkshop exporter` never loads pandas.
"""

from __future__ import annotations

import sys
from importlib import import_module

import click

from gpuworkshop.errors import WorkshopError

VERBS: dict[str, tuple[str, str]] = {
    "exporter": ("gpuworkshop.exporter.command", "serve GPU metrics in DCGM's exposition"),
    "record": ("gpuworkshop.exporter.record", "record what a GPU of this machine does, for simulated ones"),
    "tools": ("gpuworkshop.processes.command", "find or fetch kubectl, helm, aws, prometheus"),
    "explain": ("gpuworkshop.cwagent.command", "what becomes of each series on its way to CloudWatch"),
    "up": ("gpuworkshop.workshop.command", "bring up the lab and JupyterLab"),
    "down": ("gpuworkshop.workshop.command", "end everything that the workshop started"),
    "status": ("gpuworkshop.workshop.command", "what runs, and whether it is healthy"),
    "supervise": ("gpuworkshop.workshop.command", "keep one group of services running (used by `up`)"),
    "lab": ("gpuworkshop.lab.command", "the rehearsal cluster: up, down, status, reset, create, scale"),
    "catch-up": ("gpuworkshop.workshop.command", "bring the world to where a notebook starts"),
    "rehearse": ("gpuworkshop.workshop.command", "run the notebooks headless and report"),
}


class _Verbs(click.Group):
    """Loads a verb's room when it is called; `--help` needs only the table."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command: click.Command = getattr(import_module(VERBS[cmd_name][0]), cmd_name.replace("-", "_"))
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb, about) for verb, (_, about) in VERBS.items()])


@click.group(cls=_Verbs)
@click.version_option(package_name="gpuworkshop")
def cli() -> None:
    """Live GPU metrics by pod: the workshop's command line."""


def main() -> None:
    """Run a verb. Errors become sentences and exit code 1, wrong usage exit code 2, Ctrl-C 130."""
    try:
        sys.exit(cli.main(standalone_mode=False))
    except WorkshopError as error:
        click.echo(f"{type(error).__name__}: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        about = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        todo = "is it what it should be, may you write there, and is there room on the disk (df -h)?"
        click.echo(f"{about}\nWhat to do: {todo}", err=True)
        sys.exit(1)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; run the same command again to go on", err=True)
        sys.exit(130)

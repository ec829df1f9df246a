"""`gpuworkshop tools`: where each command-line tool is, fetching those that are missing."""

from __future__ import annotations

import json
import sys

import click

from gpuworkshop import settings as setup
from gpuworkshop import versions
from gpuworkshop.errors import ToolError
from gpuworkshop.processes import tools as finder
from gpuworkshop.processes.downloads import say
from gpuworkshop.processes.tools import Found
from gpuworkshop.settings import Settings


@click.command()
@click.argument("names", nargs=-1, type=click.Choice(versions.commands()), metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of lines.")
def tools(names: tuple[str, ...], as_json: bool) -> None:
    """Print path, version and source of each tool NAME (default: all), fetching what is missing."""
    settings = setup.load()
    found, missing = _locate(names or tuple(versions.commands()), settings)
    if as_json:
        click.echo(json.dumps({"tools": [_entry(each) for each in found], "missing": missing}, indent=1))
    else:
        for each in found:
            click.echo(f"{each.name:<11} {each.version:<9} {each.path}  ({each.source})")
    if warning := versions.stale():
        say(warning)
    if missing:
        for reason in dict.fromkeys(missing.values()):
            say(reason)
        say(f"missing: {', '.join(missing)}")
        sys.exit(1)


def _locate(names: tuple[str, ...], settings: Settings) -> tuple[list[Found], dict[str, str]]:
    """What was found, in the order of `names`, and name → why of what was not."""
    found: list[Found] = []
    missing: dict[str, str] = {}
    for name in names:
        try:
            found.append(finder.locate(versions.tool_of(name), settings)[name])
        except ToolError as error:
            missing[name] = str(error)
    return found, missing


def _entry(found: Found) -> dict[str, str]:
    return {"name": found.name, "path": str(found.path), "version": found.version, "source": found.source}

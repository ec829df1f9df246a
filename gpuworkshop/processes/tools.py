"""kubectl, helm, aws, prometheus and promtool: found on this machine, or fetched for it.

`find_or_fetch` looks on the PATH, then among what was fetched before, then asks each source that
`versions.toml` lists. Whatever is found is run and asked for its version before it is used, and why each
place would not do is kept for the message that is shown when none does.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpuworkshop import versions
from gpuworkshop.errors import DiskFull, ToolError, ToolMissing
from gpuworkshop.processes import platforms, probing, sources, toolcache
from gpuworkshop.processes.downloads import say
from gpuworkshop.settings import Settings
from gpuworkshop.versions import Release, Tool


@dataclass(frozen=True)
class Found:
    """A command that can be used, and where it came from."""

    name: str
    path: Path
    version: str
    source: str


def find_or_fetch(name: str, settings: Settings, *, progress: bool = True) -> Path:
    """The path of `kubectl`, `helm`, `aws`, `prometheus` or `promtool`, fetched if the machine has none.

    Raises ToolMissing naming each source that was tried and why it would not do, UnsupportedPlatform on
    anything but Linux, DiskFull.
    """
    return locate(versions.tool_of(name), settings, progress=progress)[name].path


def locate(tool: Tool, settings: Settings, *, progress: bool = True) -> dict[str, Found]:
    """The tool's commands, by name; as `find_or_fetch`."""
    platforms.require_linux()
    reasons: list[tuple[str, str]] = []
    found = _on_path(tool, settings, reasons) or _cached(tool, settings, reasons)
    if not found:
        with _disk_errors(tool, settings), toolcache.locked(settings.tools, tool.name):
            found = _cached(tool, settings, []) or _fetch(tool, settings, reasons, progress)
    if not found:
        raise _missing(tool, reasons)
    return found


def _on_path(tool: Tool, settings: Settings, reasons: list[tuple[str, str]]) -> dict[str, Found]:
    """In the first folder of the PATH that has all the tool's commands, new enough."""
    seen = False
    for folder in (Path(part).absolute() for part in os.get_exec_path()):
        if folder.is_relative_to(settings.tools) or not shutil.which(tool.commands[0], path=folder):
            continue
        seen = True
        try:
            return _probed(tool, {name: folder / name for name in tool.commands}, "PATH")
        except ToolError as error:
            reasons.append((str(folder / tool.commands[0]), error.seen))
    if not seen:
        reasons.append(("PATH", f"no {tool.commands[0]} there"))
    return {}


def _cached(tool: Tool, settings: Settings, reasons: list[tuple[str, str]]) -> dict[str, Found]:
    home = settings.tools / tool.name
    try:
        manifest = toolcache.load(settings.tools, tool.name)
        if manifest:
            paths = {name: home / path for name, path in manifest.commands.items()}
            return _probed(tool, paths, manifest.source)
    except ToolError as error:
        reasons.append((str(home), error.seen))
    return {}


def _fetch(
    tool: Tool, settings: Settings, reasons: list[tuple[str, str]], progress: bool
) -> dict[str, Found]:
    known = tool.sources_for(platforms.architecture())
    for source in known:
        say(f"{tool.name}: trying the {source.title}")
        try:
            with toolcache.staging(settings.tools, tool.name) as folder:
                commands = sources.fetch(source, folder, progress=progress)
                _probed(tool, {name: folder / path for name, path in commands.items()}, source.title)
                toolcache.install(
                    folder, settings.tools, tool.name, toolcache.Manifest(source.title, commands)
                )
        except ToolError as error:
            reasons.append((source.title, error.seen))
        else:
            return _cached(tool, settings, reasons)
    if all(isinstance(source, Release) for source in known):
        reasons.append(("package registries", f"none has {tool.name} for this processor"))
    return {}


def _probed(tool: Tool, paths: dict[str, Path], source: str) -> dict[str, Found]:
    """All commands of the tool, each run and asked. Raises ToolError if one will not do."""
    found = {}
    for name in tool.commands:
        if name not in paths or not os.access(paths[name], os.X_OK):
            raise ToolError(f"there is no {name} that can be run beside it")
        version = probing.version(name, paths[name])
        if least := tool.too_old(version):
            raise ToolError(f"it is version {version}, and at least {least} is needed")
        found[name] = Found(name, paths[name], version, source)
    return found


@contextmanager
def _disk_errors(tool: Tool, settings: Settings) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        step = f"fetching {tool.name}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"no space is left for {settings.tools}",
                step=step,
                todo="make room (about 400 MB are needed), then run the same command again",
            ) from error
        raise ToolError(
            f"{error.filename or settings.tools}: {error.strerror}",
            step=step,
            todo=f"see to it that {settings.tools} can be written",
        ) from error


def _missing(tool: Tool, reasons: list[tuple[str, str]]) -> ToolMissing:
    tried = "\n".join(f"  - {place}: {reason}" for place, reason in reasons)
    return ToolMissing(
        f"{' and '.join(tool.commands)} can be neither found nor fetched. Tried were:\n{tried}",
        step=f"looking for {tool.name}",
        todo=f"connect this machine to the internet or a package mirror, or put "
        f"{' and '.join(tool.commands)} (at least {' or '.join(tool.minimum)}) on the PATH; "
        "then run the same command again",
    )

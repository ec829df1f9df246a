"""Official releases: one file over HTTPS, used only when its SHA-256 is the pinned one."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from gpuworkshop.processes import archives
from gpuworkshop.processes.downloads import download
from gpuworkshop.versions import Release


def fetch(source: Release, into: Path, *, progress: bool) -> dict[str, str]:
    """Download the release and take its commands out of it."""
    name = PurePosixPath(source.url).name
    if not source.members:
        (into / "bin").mkdir()
        download(source.url, into / "bin" / name, source.sha256, progress=progress)
        (into / "bin" / name).chmod(0o755)
        return {name: f"bin/{name}"}
    archive = into / name
    download(source.url, archive, source.sha256, progress=progress)
    if source.tree:
        archives.extract_tree(archive, source.tree, into / "bin")
        commands = {name: f"bin/{path.removeprefix(source.tree)}" for name, path in source.members.items()}
    else:
        for command, member in source.members.items():
            archives.extract(archive, member, into / "bin" / command)
        commands = {command: f"bin/{command}" for command in source.members}
    archive.unlink()
    return commands

"""Packages of a Debian suite, unpacked beside the system and not installed in it.

A private source list points apt at the suite on the mirror that this machine already uses; lists and cache
are private too, so it needs no root and leaves the machine's apt as it is. apt checks the packages by the
Debian archive's key.
"""

from __future__ import annotations

import platform
import re
import shutil
import tempfile
from pathlib import Path

from gpuworkshop.errors import ToolError
from gpuworkshop.processes import capture
from gpuworkshop.versions import DebianPackages

APT = Path("/etc/apt")
KEYRINGS = Path("/usr/share/keyrings")
LIMIT_S = 300.0


def fetch(source: DebianPackages, into: Path) -> dict[str, str]:
    """Download the packages, unpack them, and keep their commands."""
    for program in ("apt-get", "dpkg"):
        if not shutil.which(program):
            raise ToolError(f"this machine has no {program}")
    line = f"deb [arch={_dpkg_architecture()} signed-by={keyring()}] {mirror(APT)} {source.suite} main\n"
    with tempfile.TemporaryDirectory(dir=into) as folder:
        _download(Path(folder), line, source.packages)
        for package in Path(folder).glob("*.deb"):
            capture.run(["dpkg", "-x", package, Path(folder, "root")], LIMIT_S)
        (into / "bin").mkdir()
        for command, member in source.members.items():
            shutil.move(Path(folder, "root", member), into / "bin" / command)
    return {command: f"bin/{command}" for command in source.members}


def mirror(apt: Path) -> str:
    """The address of the Debian mirror in this machine's apt sources, of either format.

    Raises ToolError on a machine that is not Debian or has no such source.
    """
    release = platform.freedesktop_os_release()
    if release.get("ID") != "debian":
        raise ToolError(f"this machine runs {release.get('PRETTY_NAME', 'another system')}, not Debian")
    suite = release.get("VERSION_CODENAME", "")
    entries = [*_one_line(apt), *_deb822(apt)]
    for address, suites in entries:
        if suite in suites:
            return address
    raise ToolError(f"the machine's apt sources name no mirror for Debian {suite}")


def keyring() -> Path:
    """The Debian archive's keys. Raises ToolError when the machine has none."""
    for name in ("debian-archive-keyring.gpg", "debian-archive-keyring.pgp"):
        if (KEYRINGS / name).exists():
            return KEYRINGS / name
    raise ToolError(f"the Debian archive's keys are not in {KEYRINGS}")


def _one_line(apt: Path) -> list[tuple[str, list[str]]]:
    """(address, suites) of `deb [options] ADDRESS SUITE COMPONENT …` lines."""
    paths = [apt / "sources.list", *sorted((apt / "sources.list.d").glob("*.list"))]
    lines = [line for path in paths if path.exists() for line in path.read_text("utf-8").splitlines()]
    found = [re.match(r"\s*deb\s+(?:\[[^\]]*\]\s*)?(\S+)\s+(\S+)", line) for line in lines]
    return [(match[1], [match[2]]) for match in found if match]


def _deb822(apt: Path) -> list[tuple[str, list[str]]]:
    """(address, suites) of the stanzas of `*.sources` files, see sources.list(5)."""
    entries = []
    for path in sorted((apt / "sources.list.d").glob("*.sources")):
        for stanza in re.split(r"\n\s*\n", path.read_text("utf-8")):
            text = re.sub(r"(?m)^#.*\n?", "", stanza)
            fields = {
                key.lower(): value.split()
                for key, value in re.findall(r"(?m)^([\w-]+):((?:.*)(?:\n[ \t].*)*)", text)
            }
            if "deb" in fields.get("types", []) and fields.get("enabled") != ["no"]:
                entries += [(address, fields.get("suites", [])) for address in fields.get("uris", [])]
    return entries


def _dpkg_architecture() -> str:
    return capture.run(["dpkg", "--print-architecture"], LIMIT_S).strip()


def _download(folder: Path, line: str, packages: tuple[str, ...]) -> None:
    (folder / "sources.list").write_text(line, encoding="utf-8")
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "cache" / "archives" / "partial").mkdir(parents=True)
    options = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": folder / "lists",
        "Dir::Cache": folder / "cache",
        "APT::Sandbox::User": "root",  # the folder is ours alone; without root it changes nothing
        "Acquire::Languages": "none",
        "Acquire::Retries": "1",
        "Acquire::http::Timeout": "10",
        "Acquire::https::Timeout": "10",
        "APT::Update::Error-Mode": "any",
    }
    settings = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    capture.run(["apt-get", "-q", *settings, "update"], LIMIT_S, env={"LC_ALL": "C"})
    capture.run(["apt-get", "-q", *settings, "download", *packages], LIMIT_S, env={"LC_ALL": "C"}, cwd=folder)

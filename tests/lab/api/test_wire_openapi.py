"""The OpenAPI documents: what kubectl reads in them, and the real kubectl reading them."""

from __future__ import annotations

import json
import subprocess
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from gpuworkshop.lab.api import discovery
from gpuworkshop.lab.api.kinds import BUILT_IN, Kind, KindTable
from gpuworkshop.lab.api.wire import openapi
from gpuworkshop.lab.api.wire.descriptions import ELSEWHERE
from gpuworkshop.lab.api.wire.schema import fields_of, full_name
from gpuworkshop.processes.tools import find_or_fetch
from gpuworkshop.settings import Settings

WIDGET = Kind("example.org", "v1", "Widget", "widgets")
WIDGET_SCHEMA = {
    "type": "object",
    "description": "A widget.",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {"size": {"type": "integer", "description": "How large it is."}},
        }
    },
}
TABLE = KindTable()
TABLE.add(WIDGET)
VERSIONS = sorted({(kind.group, kind.version) for kind in TABLE})


def document(group: str, version: str = "v1") -> dict[str, Any]:
    found = openapi.document(
        TABLE, group, version, {"widgets": WIDGET_SCHEMA} if group == WIDGET.group else {}
    )
    assert found is not None
    return found


def schema_of(found: dict[str, Any], kind: str) -> dict[str, Any]:
    """The one schema that says that it is a kind's."""
    (schema,) = (
        schema
        for schema in found["components"]["schemas"].values()
        if any(gvk["kind"] == kind for gvk in schema.get("x-kubernetes-group-version-kind", ()))
    )
    return schema  # type: ignore[no-any-return]


def resolved(found: dict[str, Any], schema: dict[str, Any], *names: str) -> dict[str, Any]:
    """The schema of a field, found along references as kubectl does."""
    for name in names:
        schema = schema["properties"][name]
        schema = schema.get("items") or schema.get("additionalProperties") or schema
        if "allOf" in schema:
            schema = schema["allOf"][0]
        if "$ref" in schema:
            schema = found["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def test_root_names_every_version() -> None:
    paths = openapi.root(TABLE)["paths"]
    expected = {f"apis/{group}/{version}" if group else f"api/{version}" for group, version in VERSIONS}
    assert paths.keys() == expected
    for path, entry in paths.items():
        assert entry["serverRelativeURL"].startswith(f"/openapi/v3/{path}?hash=")


def test_hash_changes_with_the_salt() -> None:
    assert openapi.root(TABLE, "1") == openapi.root(TABLE, "1")
    assert openapi.root(TABLE, "1") != openapi.root(TABLE, "2")


def test_nothing_for_what_is_not_served() -> None:
    assert openapi.document(TABLE, "apps", "v1beta1", {}) is None
    assert openapi.document([], "", "v1", {}) is None


@pytest.mark.parametrize(("group", "version"), VERSIONS)
def test_every_reference_leads_somewhere(group: str, version: str) -> None:
    found = document(group, version)
    schemas = found["components"]["schemas"]
    text = json.dumps(found)
    assert text.count('"$ref"') > 5
    for reference in {part.split('"')[0] for part in text.split('"$ref": "')[1:]}:
        assert reference.removeprefix("#/components/schemas/") in schemas


@pytest.mark.parametrize("kind", list(TABLE), ids=lambda kind: kind.kind)
def test_operations_of_every_kind(kind: Kind) -> None:
    found = document(kind.group, kind.version)
    schema = schema_of(found, kind.kind)
    assert {"apiVersion", "kind", "metadata"} <= schema["properties"].keys()
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    item = f"/{kind.plural}/{{name}}"
    (path,) = (path for path in found["paths"] if path.endswith(item))
    assert ("{namespace}" in path) == kind.namespaced
    patch = found["paths"][path]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == gvk
    assert patch["x-kubernetes-action"] == "patch"
    assert {parameter["name"] for parameter in patch["parameters"]} >= {"dryRun", "fieldValidation"}
    strategic = "application/strategic-merge-patch+json" in patch["requestBody"]["content"]
    assert strategic == bool(kind.message)
    collection = found["paths"][path.removesuffix("/{name}")]
    assert collection.keys() == {"get", "post"}
    assert collection["post"]["x-kubernetes-group-version-kind"] == gvk


def test_how_lists_merge() -> None:
    found = document("apps")
    deployment = schema_of(found, "Deployment")
    pod = resolved(found, deployment, "spec", "template", "spec")["properties"]
    assert pod["containers"]["x-kubernetes-list-type"] == "map"
    assert pod["containers"]["x-kubernetes-list-map-keys"] == ["name"]
    assert pod["containers"]["x-kubernetes-patch-strategy"] == "merge"
    assert pod["containers"]["x-kubernetes-patch-merge-key"] == "name"
    assert pod["volumes"]["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    assert pod["tolerations"]["x-kubernetes-list-type"] == "atomic"
    assert "x-kubernetes-patch-strategy" not in pod["tolerations"]
    assert pod["nodeSelector"]["x-kubernetes-map-type"] == "atomic"
    container = resolved(found, deployment, "spec", "template", "spec", "containers")
    assert container["properties"]["ports"]["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert container["required"] == ["name"]
    strategy = resolved(found, deployment, "spec")["properties"]["strategy"]
    assert strategy["x-kubernetes-patch-strategy"] == "retainKeys"
    metadata = resolved(found, deployment, "metadata")["properties"]
    assert metadata["finalizers"]["x-kubernetes-list-type"] == "set"
    assert metadata["finalizers"]["x-kubernetes-patch-strategy"] == "merge"
    assert "x-kubernetes-patch-merge-key" not in metadata["finalizers"]


def test_types() -> None:
    found = document("")
    container = resolved(found, schema_of(found, "Pod"), "spec", "containers")
    probe = resolved(found, container, "livenessProbe")
    assert probe["properties"]["periodSeconds"]["type"] == "integer"
    assert resolved(found, probe, "httpGet", "port")["format"] == "int-or-string"
    quantity = resolved(found, container, "resources", "limits")
    assert quantity["oneOf"] == [{"type": "string"}, {"type": "number"}]
    secret = schema_of(found, "Secret")["properties"]["data"]
    assert secret["additionalProperties"] == {"type": "string", "format": "byte"}


def test_custom_kind_has_its_own_schema() -> None:
    found = document("example.org")
    widget = schema_of(found, "Widget")
    assert widget["description"] == "A widget."
    assert widget["properties"]["spec"] == WIDGET_SCHEMA["properties"]["spec"]  # type: ignore[index]
    assert "labels" in resolved(found, widget, "metadata")["properties"]
    assert "x-kubernetes-group-version-kind" not in WIDGET_SCHEMA


def test_descriptions_are_of_fields_that_exist() -> None:
    table = tomllib.loads(
        files("gpuworkshop.lab.api.wire").joinpath("descriptions.toml").read_text(encoding="utf-8")
    )
    for short, described in table.items():
        known = fields_of(full_name(short))
        assert known, short
        assert described.keys() <= {"", *known}, short
        assert all(text.endswith(".") and len(text) < 110 for text in described.values()), short


@pytest.mark.parametrize("kind", [kind for kind in BUILT_IN if kind.message], ids=lambda kind: kind.kind)
def test_every_kind_says_what_its_parts_are(kind: Kind) -> None:
    found = schema_of(document(kind.group), kind.kind)
    for name in ("apiVersion", "kind", "metadata"):
        assert found["properties"][name]["description"] != ELSEWHERE
    if kind.stored and kind.kind != "ControllerRevision":
        assert found["description"] != ELSEWHERE


def test_what_a_learner_looks_up_is_explained() -> None:
    found = document("")
    container = resolved(found, schema_of(found, "Pod"), "spec", "containers")
    assert "GPUs" in container["properties"]["resources"]["description"]
    resources = resolved(found, container, "resources")
    assert "nvidia.com/gpu" in resources["properties"]["limits"]["description"]
    assert resources["description"].startswith("What a container asks for")
    assert container["properties"]["resizePolicy"]["description"] == ELSEWHERE


class _Documents(BaseHTTPRequestHandler):
    """Answers with discovery and the documents, and nothing else."""

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        parts = path.strip("/").split("/")
        found: object = None
        if path == "/openapi/v3":
            found = openapi.root(TABLE)
        elif parts[0] == "openapi":
            found = document("" if parts[2] == "api" else parts[3], parts[-1])
        elif parts[0] in ("api", "apis"):
            found, _ = discovery.document(TABLE, path, "")
        body = json.dumps(found).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture(scope="module")
def explain(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """`kubectl explain` of the real kubectl, on these documents."""
    kubectl, home = find_or_fetch("kubectl", settings), tmp_path_factory.mktemp("home")
    with ThreadingHTTPServer(("127.0.0.1", 0), _Documents) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def run(*arguments: str) -> str:
            command = [str(kubectl), "-s", f"http://127.0.0.1:{server.server_port}", "explain", *arguments]
            environment = {"HOME": str(home), "KUBECONFIG": str(Path(home) / "none")}
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
            return done.stdout + done.stderr

        yield run
        server.shutdown()
        thread.join()


@pytest.mark.real
def test_kubectl_explains(explain: Any) -> None:
    said = explain("deployment.spec")
    assert "KIND:       Deployment" in said
    assert "replicas\t<integer>" in said
    assert "selector\t<LabelSelector> -required-" in said
    assert "containers\t<[]Container> -required-" in explain("pod.spec")
    assert "limits\t<map[string]Quantity>" in explain("pod.spec.containers.resources")
    assert "port\t<IntOrString> -required-" in explain("pod.spec.containers.livenessProbe.httpGet")
    assert "creationTimestamp\t<string>" in explain("configmap.metadata")
    assert 'field "replicaz" does not exist' in explain("deployment.spec.replicaz")
    assert "The most that it may use. GPUs, as nvidia.com/gpu" in explain("pod.spec.containers.resources")


@pytest.mark.real
def test_kubectl_explains_a_custom_kind(explain: Any) -> None:
    said = explain("widgets.spec")
    assert "size\t<integer> -required-" in said
    assert "How large it is." in said

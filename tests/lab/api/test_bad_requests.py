"""Requests that make no sense: each gets the right Status, and the server goes on."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator

import httpx
import pytest
import yaml
from own_cluster import Client, ClusterProcess

pytestmark = pytest.mark.real
MAPS = "/api/v1/namespaces/default/configmaps"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"


@pytest.fixture(scope="module")
def api(cluster: ClusterProcess) -> Iterator[httpx.Client]:
    """The API server, as the admin."""
    config = yaml.safe_load(cluster.folder.kubeconfig.read_text())
    headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    trust = ssl.create_default_context(cafile=str(cluster.folder.secrets / "ca.crt"))
    with httpx.Client(base_url=cluster.access.server, headers=headers, verify=trust) as found:
        yield found
        assert found.get("/readyz").text == "ok"


def a_map(**more: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "bad"}, **more}


BODIES: dict[str, tuple[str, bytes, int, str]] = {
    "no json": (JSON, b"{", 400, "BadRequest"),
    "a list": (JSON, b"[]", 400, "BadRequest"),
    "a number": (JSON, b"7", 400, "BadRequest"),
    "nothing": (JSON, b"", 422, "Invalid"),
    "not utf-8": (JSON, b'{"kind": "\xff"}', 400, "BadRequest"),
    "NaN": (JSON, b'{"data": NaN}', 400, "BadRequest"),
    "too deep": (JSON, b'{"data":' * 5000 + b"1" + b"}" * 5000, 400, "BadRequest"),
    "no yaml": (YAML, b"a: [", 400, "BadRequest"),
    "no protobuf": (PROTOBUF, b"k8s\x00\xff\xff\xff", 400, "BadRequest"),
    "protobuf without its mark": (PROTOBUF, b"\x0a\x04", 400, "BadRequest"),
    "another kind": (JSON, json.dumps(a_map(kind="Pod")).encode(), 400, "BadRequest"),
    "another version": (JSON, json.dumps(a_map(apiVersion="v7")).encode(), 400, "BadRequest"),
    "another namespace": (
        JSON,
        json.dumps(a_map(metadata={"name": "x", "namespace": "other"})).encode(),
        400,
        "BadRequest",
    ),
    "a name that is none": (JSON, json.dumps(a_map(metadata={"name": "A b"})).encode(), 422, "Invalid"),
    "no name": (JSON, json.dumps(a_map(metadata={})).encode(), 422, "Invalid"),
    "a version at creation": (
        JSON,
        json.dumps(a_map(metadata={"name": "x", "resourceVersion": "7"})).encode(),
        400,
        "BadRequest",
    ),
    "data of a wrong type": (JSON, json.dumps(a_map(data=["x"])).encode(), 400, "BadRequest"),
    "metadata of a wrong type": (JSON, json.dumps(a_map(metadata="x")).encode(), 400, "BadRequest"),
    "too large": (JSON, json.dumps(a_map(data={"x": "y" * 2**22})).encode(), 413, "RequestEntityTooLarge"),
    "a form unheard of": ("application/xml", b"<x/>", 415, "UnsupportedMediaType"),
}


@pytest.mark.parametrize(("form", "body", "code", "reason"), BODIES.values(), ids=BODIES)
def test_bodies(api: httpx.Client, form: str, body: bytes, code: int, reason: str) -> None:
    answer = api.post(MAPS, content=body, headers={"Content-Type": form})
    check(answer, code, reason)


PATCHES: dict[str, tuple[str, bytes, int]] = {
    "merge, no json": (MERGE, b"{", 400),
    "merge, a list": (MERGE, b"[]", 400),
    "strategic, no json": (STRATEGIC, b"nope", 400),
    "json patch, no list": (JSON_PATCH, b'{"op": "add"}', 400),
    "json patch, no such path": (JSON_PATCH, b'[{"op": "remove", "path": "/data/none"}]', 422),
    "apply, no yaml": (APPLY, b"a: [", 400),
    "apply, another name": (APPLY, json.dumps(a_map(metadata={"name": "other"})).encode(), 400),
    "a form unheard of": ("text/csv", b"a,b", 415),
}


@pytest.mark.parametrize(("form", "body", "code"), PATCHES.values(), ids=PATCHES)
def test_patches(api: httpx.Client, form: str, body: bytes, code: int) -> None:
    api.post(MAPS, json=a_map(metadata={"name": "patched"}, data={"a": "1"}))
    answer = api.patch(f"{MAPS}/patched?fieldManager=tests", content=body, headers={"Content-Type": form})
    assert answer.status_code == code, answer.text
    assert answer.json()["kind"] == "Status"
    assert api.get(f"{MAPS}/patched").json()["data"] == {"a": "1"}


QUERIES = {
    f"{MAPS}?labelSelector=a%20b%20c": 400,
    f"{MAPS}?labelSelector=a%20in%20(": 400,
    f"{MAPS}?fieldSelector=spec.nothing%3D1": 400,
    f"{MAPS}?limit=many": 400,
    f"{MAPS}?continue=nonsense": 400,
    f"{MAPS}?watch=true&resourceVersion=x": 400,
    f"{MAPS}?watch=true&timeoutSeconds=x": 400,
    f"{MAPS}?watch=true&sendInitialEvents=true": 422,
    "/api/v1/namespaces/default/unknownthings": 404,
    "/apis/nowhere.example.org/v1/things": 404,
    "/api/v2/pods": 404,
    "/nowhere": 404,
    "/api/v1/namespaces/none/pods/x": 404,
    "/api/v1/namespaces/default/pods/x/nothing": 404,
    "/api/v1/namespaces/default/pods/%00": 404,
    f"{MAPS}/../../../../etc/passwd": 404,
    "//api//v1//pods": 404,
}


@pytest.mark.parametrize(("path", "code"), QUERIES.items(), ids=QUERIES)
def test_queries_and_paths(api: httpx.Client, path: str, code: int) -> None:
    answer = api.get(path)
    assert answer.status_code == code, answer.text
    assert answer.json()["kind"] == "Status"


def test_methods_that_are_not_allowed(api: httpx.Client) -> None:
    status = "/apis/apps/v1/namespaces/default/deployments/x/status"
    for method, path in (("PUT", MAPS), ("POST", f"{MAPS}/x"), ("PATCH", MAPS), ("DELETE", status)):
        check(api.request(method, path, json=a_map()), 405, "MethodNotAllowed")


def test_a_replacement_under_an_old_version_is_a_conflict(api: httpx.Client) -> None:
    made = api.post(MAPS, json=a_map(metadata={"name": "raced"})).json()
    made["data"] = {"a": "1"}
    assert api.put(f"{MAPS}/raced", json=made).status_code == 200
    check(api.put(f"{MAPS}/raced", json={**made, "data": {"a": "2"}}), 409, "Conflict")


def test_a_watch_from_the_future_and_from_before_what_is_remembered(api: httpx.Client) -> None:
    with api.stream("GET", f"{MAPS}?watch=true&resourceVersion=999999999&timeoutSeconds=5") as answer:
        event = json.loads(next(answer.iter_lines()))
    assert (event["type"], event["object"]["code"]) == ("ERROR", 504)


def test_a_body_that_stops_half_way(cluster: ClusterProcess, api: httpx.Client) -> None:
    token = api.headers["Authorization"]
    trust = ssl.create_default_context(cafile=str(cluster.folder.secrets / "ca.crt"))
    with (
        socket.create_connection(("127.0.0.1", cluster.access.api_port)) as plain,
        trust.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
    ):
        head = f"POST {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Type: {JSON}\r\n"
        connection.sendall(f"{head}Content-Length: 1000\r\n\r\n".encode() + b'{"kind":')
    assert api.get("/readyz").text == "ok"


def test_clients_that_go_away_in_a_watch(cluster: ClusterProcess, api: httpx.Client) -> None:
    for _ in range(20):
        with api.stream("GET", f"{MAPS}?watch=true") as answer:
            assert next(answer.iter_lines())
    made = api.post(MAPS, json=a_map(metadata={"generateName": "after-"}))
    assert made.status_code == 201
    assert "Traceback" not in cluster.log


def test_the_admins_files_are_the_owners_alone(cluster: ClusterProcess, client: Client) -> None:
    for path in (
        client.kubeconfig,
        *cluster.folder.secrets.glob("*.key"),
        cluster.folder.secrets / "admin-token",
    ):
        assert path.stat().st_mode & 0o077 == 0, path


def check(answer: httpx.Response, code: int, reason: str) -> None:
    assert answer.status_code == code, answer.text
    status = answer.json()
    assert (status["kind"], status["status"]) == ("Status", "Failure")
    assert (status["reason"], status["code"]) == (reason, code)
    assert status["message"]

"""What no client should send, on a cluster of its own: the right Status each time, and the server goes on.

Bodies, patches and queries of the usual sort are in `test_bad_requests`; here are the rougher ones.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
import yaml
from own_cluster import ClusterProcess, new_cluster

from gpuworkshop.lab.api.wire import protobuf
from gpuworkshop.settings import Settings

pytestmark = pytest.mark.real
MAPS = "/api/v1/namespaces/default/configmaps"
PODS, SERVICES = "/api/v1/namespaces/default/pods", "/api/v1/namespaces/default/services"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
JSON_PATCH, APPLY = "application/json-patch+json", "application/apply-patch+yaml"
MIB = 2**20


@dataclass
class Api:
    """The API server as the admin sees it, by HTTP and by bare bytes."""

    process: ClusterProcess
    http: httpx.Client
    trust: ssl.SSLContext

    @property
    def token(self) -> str:
        return self.http.headers["Authorization"]

    def connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self.process.access.api_port), timeout=30)
        return self.trust.wrap_socket(plain, server_hostname="127.0.0.1")

    def send(self, request: bytes) -> tuple[int, bytes]:
        """Send bytes as they are; the code and the body of the answer."""
        with self.connect() as connection:
            connection.sendall(request)
            answer = b""
            while b"\r\n\r\n" not in answer and (piece := connection.recv(65536)):
                answer += piece
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split()[1]), body

    def request(self, method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
        """A request in bytes, with the admin's token."""
        lines = [f"{method} {path} HTTP/1.1", "Host: x", f"Authorization: {self.token}", *headers, "", ""]
        return "\r\n".join(lines).encode("latin-1") + body


@pytest.fixture(scope="module")
def api(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    process = new_cluster(settings, tmp_path_factory.mktemp("a rough cluster"))
    process.start()
    token = yaml.safe_load(process.folder.kubeconfig.read_text())["users"][0]["user"]["token"]
    trust = ssl.create_default_context(cafile=str(process.folder.secrets / "ca.crt"))
    headers = {"Authorization": f"Bearer {token}"}
    try:
        with httpx.Client(
            base_url=process.access.server, headers=headers, verify=trust, timeout=30
        ) as client:
            yield Api(process, client, trust)
            assert client.get("/readyz").text == "ok"
    finally:
        code = process.stop()
    assert code == 0
    assert "a fault of the lab" not in process.log
    assert "gpuworkshop.lab.api.server" not in process.log, "that is where its own faults are told"


def a_map(name: str = "bad", **more: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


def check(answer: httpx.Response, code: int, reason: str, words: str = "") -> None:
    assert answer.status_code == code, answer.text[:500]
    status = answer.json()
    assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
    assert (status["reason"], status["code"]) == (reason, code)
    assert words in status["message"]


def encoded(obj: object) -> bytes:
    return json.dumps(obj).encode()


WIRE = protobuf.encode(a_map("wired", data={"a": "1"}))
OTHER_WIRE = protobuf.encode({**a_map(), "kind": "Secret"})
UNKNOWN_WIRE = WIRE.replace(b"ConfigMap", b"ConfigNap")
BODIES: dict[str, tuple[str, str, bytes, int, str]] = {
    "protobuf cut short": (MAPS, PROTOBUF, WIRE[:-3], 400, "BadRequest"),
    "protobuf of its mark alone": (MAPS, PROTOBUF, b"k8s\x00", 400, "BadRequest"),
    "protobuf of another kind": (MAPS, PROTOBUF, OTHER_WIRE, 400, "BadRequest"),
    "protobuf of an unknown kind": (MAPS, PROTOBUF, UNKNOWN_WIRE, 400, "BadRequest"),
    "protobuf with a text that is none": (
        MAPS,
        PROTOBUF,
        WIRE.replace(b"wired", b"wi\xff\xfed"),
        400,
        "BadRequest",
    ),
    "JSON said to be protobuf": (MAPS, PROTOBUF, encoded(a_map()), 400, "BadRequest"),
    "protobuf said to be JSON": (MAPS, JSON, WIRE, 400, "BadRequest"),
    "YAML of two documents": (MAPS, YAML, b"a: 1\n---\nb: 2\n", 400, "BadRequest"),
    "YAML with a tag": (MAPS, YAML, b"!!python/object/apply:os.system [ls]", 400, "BadRequest"),
    "YAML of a billion laughs": (
        MAPS,
        YAML,
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(b"%c: &%c [%s]\n" % (n, n, b",".join([b"*%c" % (n - 1)] * 9)) for n in range(98, 108)),
        400,
        "BadRequest",
    ),
    "YAML nested deep": (MAPS, YAML, b"[" * 5000, 400, "BadRequest"),
    "JSON with a byte order mark": (MAPS, JSON, b"\xef\xbb\xbf{}", 400, "BadRequest"),
    "JSON with a lone surrogate": (MAPS, JSON, b'{"data": {"a": "\\ud800"}}', 400, "BadRequest"),
    "JSON and then some": (MAPS, JSON, b"{} {}", 400, "BadRequest"),
    "nulls all over": (
        MAPS,
        JSON,
        encoded({"metadata": None, "data": None, "immutable": None}),
        422,
        "Invalid",
    ),
    "a NUL in a name": (MAPS, JSON, encoded(a_map("a\x00b")), 422, "Invalid"),
    "a NUL in a key": (MAPS, JSON, encoded(a_map(data={"\x00": "a"})), 422, "Invalid"),
    "a name of a path": (MAPS, JSON, encoded(a_map("../../secrets")), 422, "Invalid"),
    "a name too long": (MAPS, JSON, encoded(a_map("a" * 300)), 422, "Invalid"),
    "a name that is a number": (MAPS, JSON, encoded(a_map(metadata={"name": 7})), 400, "BadRequest"),
    "a service named with a digit first": (
        SERVICES,
        JSON,
        encoded({"metadata": {"name": "1web"}, "spec": {"ports": [{"port": 80}]}}),
        422,
        "Invalid",
    ),
    "a namespace named with a dot": (
        "/api/v1/namespaces",
        JSON,
        encoded({"metadata": {"name": "a.b"}}),
        422,
        "Invalid",
    ),
    "a namespace that is not there": (
        MAPS.replace("default", "nowhere"),
        JSON,
        encoded(a_map()),
        404,
        "NotFound",
    ),
    "no namespace": ("/api/v1/configmaps", JSON, encoded(a_map()), 405, "MethodNotAllowed"),
    "a number too large": (
        PODS,
        JSON,
        encoded(
            {
                "metadata": {"name": "a"},
                "spec": {"containers": [{"name": "a", "image": "x"}], "priority": 2**70},
            }
        ),
        400,
        "BadRequest",
    ),
    "a ConfigMap too large": (MAPS, JSON, encoded(a_map(data={"a": "x" * (MIB + 1)})), 422, "Invalid"),
    "a body too large": (MAPS, JSON, b" " * (3 * MIB + 1), 413, "RequestEntityTooLarge"),
    "an object too large for etcd": (
        PODS,
        JSON,
        encoded(
            {
                "metadata": {"name": "big"},
                "spec": {"containers": [{"name": "a", "image": "x", "args": ["x" * (MIB // 2)] * 4}]},
            }
        ),
        413,
        "RequestEntityTooLarge",
    ),
    "a schema that is no schema": (
        CRDS,
        JSON,
        encoded(
            {
                "metadata": {"name": "as.example.org"},
                "spec": {
                    "group": "example.org",
                    "scope": "Cluster",
                    "names": {"plural": "as", "singular": "a", "kind": "A", "listKind": "AList"},
                    "versions": [
                        {
                            "name": "v1",
                            "served": True,
                            "storage": True,
                            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": "b"}}},
                        }
                    ],
                },
            }
        ),
        400,
        "BadRequest",
    ),
    "labels of a list, where no table knows the fields": (
        "/apis/node.k8s.io/v1/runtimeclasses",
        JSON,
        encoded({"metadata": {"name": "a", "labels": ["x"]}, "handler": "a"}),
        400,
        "BadRequest",
    ),
    "a review of a text": (
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        JSON,
        encoded({"spec": "may I?"}),
        400,
        "BadRequest",
    ),
    "a review of another kind": (
        "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
        JSON,
        encoded(a_map()),
        400,
        "BadRequest",
    ),
    "a token for less than it may be": (
        f"{ACCOUNTS}/default/token",
        JSON,
        encoded({"spec": {"expirationSeconds": 1}}),
        422,
        "Invalid",
    ),
    "a token for a text": (
        f"{ACCOUNTS}/default/token",
        JSON,
        encoded({"spec": {"expirationSeconds": "x"}}),
        400,
        "BadRequest",
    ),
    "a token of another kind": (f"{ACCOUNTS}/default/token", JSON, encoded(a_map()), 400, "BadRequest"),
    "an eviction of what is not there": (f"{PODS}/none/eviction", JSON, b"{}", 404, "NotFound"),
    "an eviction of a list": (
        f"{PODS}/none/eviction",
        JSON,
        encoded({"deleteOptions": []}),
        400,
        "BadRequest",
    ),
    "a binding to nothing": (f"{PODS}/none/binding", JSON, b"{}", 422, "Invalid"),
    "a binding to a text": (f"{PODS}/none/binding", JSON, encoded({"target": "n"}), 400, "BadRequest"),
}


@pytest.mark.parametrize(("path", "form", "body", "code", "reason"), BODIES.values(), ids=BODIES)
def test_posted(api: Api, path: str, form: str, body: bytes, code: int, reason: str) -> None:
    check(api.http.post(path, content=body, headers={"Content-Type": form}), code, reason)


def test_the_words_for_what_is_too_large(api: Api) -> None:
    body = b" " * (3 * MIB + 1)
    answer = api.http.post(MAPS, content=body, headers={"Content-Type": JSON})
    assert answer.json()["message"] == "Request entity too large: limit is 3145728"
    args = {"name": "a", "image": "x", "args": ["x" * (MIB // 2)] * 4}
    answer = api.http.post(PODS, json={"metadata": {"name": "big"}, "spec": {"containers": [args]}})
    assert answer.json()["message"] == "etcdserver: request is too large"


PATCHES: dict[str, tuple[str, bytes, int]] = {
    "merge, a text for labels": (MERGE, encoded({"metadata": {"labels": "a"}}), 400),
    "merge, another kind": (MERGE, encoded({"kind": "Pod"}), 400),
    "merge, another name": (MERGE, encoded({"metadata": {"name": "other"}}), 400),
    "merge, another namespace": (MERGE, encoded({"metadata": {"namespace": "kube-system"}}), 400),
    "merge, no metadata": (MERGE, encoded({"metadata": 7}), 400),
    "merge, an old version": (MERGE, encoded({"metadata": {"resourceVersion": "1"}, "data": {}}), 409),
    "merge, another uid": (MERGE, encoded({"metadata": {"uid": "x"}, "data": {}}), 409),
    "merge, a label that is none": (MERGE, encoded({"metadata": {"labels": {"a b": "c"}}}), 422),
    "merge, invalid UTF-8": (MERGE, b'{"data": {"a": "\xff"}}', 400),
    "merge, nested deep": (MERGE, b'{"a":' * 5000 + b"1" + b"}" * 5000, 400),
    "merge, empty": (MERGE, b"", 400),
    "merge, too large": (MERGE, encoded({"data": {"a": "x" * 3 * MIB}}), 413),
    "strategic, a list": (STRATEGIC, b"[]", 400),
    "strategic, a text for a map": (STRATEGIC, encoded({"data": "x"}), 400),
    "json patch, an unknown operation": (JSON_PATCH, encoded([{"op": "jump", "path": "/data"}]), 422),
    "json patch, no path": (JSON_PATCH, encoded([{"op": "add", "value": 1}]), 422),
    "json patch, a path that is a number": (JSON_PATCH, encoded([{"op": "add", "path": 7, "value": 1}]), 422),
    "json patch, a test that fails": (
        JSON_PATCH,
        encoded([{"op": "test", "path": "/data/a", "value": "2"}]),
        422,
    ),
    "json patch, of texts": (JSON_PATCH, encoded(["add"]), 400),
    "json patch, the whole object away": (JSON_PATCH, encoded([{"op": "remove", "path": ""}]), 422),
    "json patch, the metadata away": (
        JSON_PATCH,
        encoded([{"op": "replace", "path": "/metadata", "value": 1}]),
        400,
    ),
    "json patch, far too many": (
        JSON_PATCH,
        encoded([{"op": "test", "path": "/data/a", "value": "1"}] * 10_001),
        413,
    ),
    "apply, another kind": (APPLY, encoded({"apiVersion": "v1", "kind": "Pod"}), 400),
    "apply, a list": (APPLY, b"- a\n", 400),
    "apply, managed fields": (
        APPLY,
        encoded({**a_map(), "metadata": {"name": "patched", "managedFields": [{"manager": "x"}]}}),
        400,
    ),
    "a form unheard of": ("application/json", b"{}", 415),
}


@pytest.mark.parametrize(("form", "body", "code"), PATCHES.values(), ids=PATCHES)
def test_patches(api: Api, form: str, body: bytes, code: int) -> None:
    api.http.post(MAPS, json=a_map("patched", data={"a": "1"}))
    before = api.http.get(f"{MAPS}/patched").json()
    answer = api.http.patch(
        f"{MAPS}/patched?fieldManager=tests", content=body, headers={"Content-Type": form}
    )
    assert answer.status_code == code, answer.text[:500]
    assert (answer.json()["kind"], answer.json()["code"]) == ("Status", code)
    assert api.http.get(f"{MAPS}/patched").json() == before


def test_apply_without_a_manager(api: Api) -> None:
    answer = api.http.patch(f"{MAPS}/x", content=encoded(a_map("x")), headers={"Content-Type": APPLY})
    check(answer, 422, "Invalid", "fieldManager: Required value")


QUERIES: dict[str, tuple[int, str]] = {
    f"{MAPS}?limit=-1": (400, "BadRequest"),
    f"{MAPS}?limit=1e3": (400, "BadRequest"),
    f"{MAPS}?limit={'9' * 5000}": (400, "BadRequest"),
    f"{MAPS}?limit=%00": (400, "BadRequest"),
    f"{MAPS}?limit=%D9%A3": (400, "BadRequest"),  # a digit, but not one of ours
    f"{MAPS}?continue=%FF%FF": (400, "BadRequest"),
    f"{MAPS}?continue=bnVsbA==": (400, "BadRequest"),
    f"{MAPS}?resourceVersion=x": (400, "BadRequest"),
    f"{MAPS}?resourceVersion=-1": (400, "BadRequest"),
    f"{MAPS}?resourceVersion=999999999": (504, "Timeout"),
    f"{MAPS}?resourceVersion=1&resourceVersionMatch=Exact": (410, "Expired"),
    f"{MAPS}?resourceVersion=1&resourceVersionMatch=Sometimes": (422, "Invalid"),
    f"{MAPS}?resourceVersionMatch=Exact": (422, "Invalid"),
    f"{MAPS}?sendInitialEvents=true": (422, "Invalid"),
    f"{MAPS}?watch=1&timeoutSeconds=-1": (400, "BadRequest"),
    f"{MAPS}?watch=1&timeoutSeconds={'9' * 400}": (400, "BadRequest"),
    f"{MAPS}?watch=1&resourceVersion={'9' * 400}": (400, "BadRequest"),
    f"{MAPS}?watch=1&resourceVersion=1&resourceVersionMatch=Exact": (422, "Invalid"),
    f"{MAPS}?labelSelector=%FF": (400, "BadRequest"),
    f"{MAPS}?labelSelector=%00": (400, "BadRequest"),
    f"{MAPS}?labelSelector={'a%2C' * 1000}%3D%3D%3D": (400, "BadRequest"),
    f"{MAPS}?labelSelector=a%20notin%20()%2C%2C": (400, "BadRequest"),
    f"{MAPS}?fieldSelector=metadata.name": (400, "BadRequest"),
    f"{MAPS}?fieldSelector=%3D%3D": (400, "BadRequest"),
    f"{MAPS}/kube-root-ca.crt?resourceVersion=x": (400, "BadRequest"),
    "/api/v1//": (404, "NotFound"),
    "//": (404, "NotFound"),
    "/api/v1/namespaces//pods": (404, "NotFound"),
    "/api/v1/namespaces/default//pods": (404, "NotFound"),
    "/apis//v1/pods": (404, "NotFound"),
    "/apis/apps/v2/deployments": (404, "NotFound"),
    "/apis/apps/v1beta1/namespaces/default/deployments": (404, "NotFound"),
    "/api/v1/namespaces/default/nodes": (404, "NotFound"),
    "/api/v1/pods/web": (404, "NotFound"),
    f"{PODS}/a/status/more": (404, "NotFound"),
    f"{PODS}/{'a' * 4000}": (404, "NotFound"),
    f"{PODS}/%0d%0aSet-Cookie:%20a=b": (404, "NotFound"),
    f"{PODS}/%ff%fe": (404, "NotFound"),
    f"{MAPS}%2Fkube-root-ca.crt%2Fstatus": (404, "NotFound"),
    "/openapi/v3/apis/none.example.org/v1": (404, "NotFound"),
    "/apis/none.example.org": (404, "NotFound"),
}


@pytest.mark.parametrize(("path", "expected"), QUERIES.items(), ids=[path[:80] for path in QUERIES])
def test_queries_and_paths(api: Api, path: str, expected: tuple[int, str]) -> None:
    check(api.http.get(path), *expected)


def test_a_table_in_a_form_unheard_of(api: Api) -> None:
    headers = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
    answer = api.http.get(f"{MAPS}?includeObject=Nonsense", headers=headers)
    check(answer, 400, "BadRequest", "includeObject")


DELETIONS: dict[str, tuple[str, object, int]] = {
    "a policy unheard of": ("", {"propagationPolicy": "Sideways"}, 422),
    "a policy in the query": ("?propagationPolicy=Sideways", {}, 422),
    "a policy that is a list": ("", {"propagationPolicy": []}, 400),
    "a grace that is a text": ("", {"gracePeriodSeconds": "x"}, 400),
    "a grace in the query": ("?gracePeriodSeconds=x", {}, 400),
    "preconditions of a text": ("", {"preconditions": "uid"}, 400),
    "another uid": ("", {"preconditions": {"uid": "x"}}, 409),
    "another version": ("", {"preconditions": {"resourceVersion": "1"}}, 409),
    "a dry run of some": ("", {"dryRun": ["Some"]}, 400),
    "a dry run of some in the query": ("?dryRun=Some", {}, 400),
    "another kind": ("", a_map("kept"), 400),
    "a list": ("", [], 400),
}


@pytest.mark.parametrize(("query", "options", "code"), DELETIONS.values(), ids=DELETIONS)
def test_deletions(api: Api, query: str, options: object, code: int) -> None:
    api.http.post(MAPS, json=a_map("kept"))
    answer = api.http.request("DELETE", f"{MAPS}/kept{query}", json=options)
    assert answer.status_code == code, answer.text
    assert answer.json()["kind"] == "Status"
    assert api.http.get(f"{MAPS}/kept").status_code == 200


SCALES: dict[str, tuple[str, str, object, int]] = {
    "a text": ("PUT", JSON, {"spec": "2"}, 400),
    "replicas of a text": ("PUT", JSON, {"spec": {"replicas": "2"}}, 400),
    "less than none": ("PUT", JSON, {"spec": {"replicas": -1}}, 422),
    "another kind": ("PUT", JSON, {"kind": "Deployment", "spec": {"replicas": 1}}, 400),
    "an old version": ("PUT", JSON, {"metadata": {"resourceVersion": "1"}, "spec": {"replicas": 3}}, 409),
    "merged from a text": ("PATCH", MERGE, {"spec": {"replicas": "2"}}, 400),
    "a patch that does not fit": ("PATCH", JSON_PATCH, [{"op": "remove", "path": "/none"}], 422),
    "to be deleted": ("DELETE", JSON, {}, 405),
    "to be created": ("POST", JSON, {}, 405),
}


@pytest.mark.parametrize(("method", "form", "body", "code"), SCALES.values(), ids=SCALES)
def test_scales(api: Api, method: str, form: str, body: object, code: int) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "x"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    api.http.post(DEPLOYMENTS, json={"metadata": {"name": "web"}, "spec": spec})
    answer = api.http.request(
        method, f"{DEPLOYMENTS}/web/scale", content=encoded(body), headers={"Content-Type": form}
    )
    assert answer.status_code == code, answer.text
    assert answer.json()["kind"] == "Status"
    assert api.http.get(f"{DEPLOYMENTS}/web/scale").json()["spec"] == {"replicas": 0}


METHODS = [
    ("DELETE", "/api/v1/configmaps"),
    ("POST", "/api/v1/configmaps"),
    ("PUT", MAPS),
    ("PATCH", MAPS),
    ("OPTIONS", MAPS),
    ("TRACE", MAPS),
    ("POST", f"{MAPS}/kube-root-ca.crt"),
    ("DELETE", f"{PODS}/web/status"),
    ("POST", f"{PODS}/web/status"),
    ("GET", f"{PODS}/web/eviction"),
    ("GET", f"{PODS}/web/binding"),
    ("PUT", f"{ACCOUNTS}/default/token"),
    ("DELETE", f"{PODS}/web/log"),
    ("PATCH", "/api/v1/namespaces/default/finalize"),
]


@pytest.mark.parametrize(("method", "path"), METHODS, ids=[" ".join(method) for method in METHODS])
def test_methods_that_are_not_allowed(api: Api, method: str, path: str) -> None:
    check(api.http.request(method, path), 405, "MethodNotAllowed")


def test_head_has_no_body(api: Api) -> None:
    assert api.http.head("/version").status_code == 200
    answer = api.http.head(MAPS)
    assert (answer.status_code, answer.content) == (405, b"")


def test_warnings_fit_into_headers(api: Api) -> None:
    odd = {f'a\nb\x00"é\\{n}': n for n in range(2000)}
    answer = api.http.post(MAPS, json={**a_map("warned"), **odd})
    assert answer.status_code == 201
    told = answer.headers.get_list("Warning")
    assert all(header.startswith('299 - "unknown field') for header in told)
    assert 0 < sum(map(len, told)) < 8192
    assert len(told) < 90  # Python's http.client takes a hundred headers
    strict = api.http.post(f"{MAPS}?fieldValidation=Strict", json={**a_map("strict"), **odd})
    check(strict, 400, "BadRequest", "strict decoding error: unknown field")
    assert len(strict.content) < 16_384


def test_a_field_validation_unheard_of(api: Api) -> None:
    check(api.http.post(f"{MAPS}?fieldValidation=Sometimes", json=a_map()), 400, "BadRequest")


BYTES: dict[str, tuple[Callable[[Api], bytes], int]] = {
    "no HTTP": (lambda _: b"garbage\r\n\r\n", 400),
    "HTTP/2 unasked": (lambda _: b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "a method unheard of": (lambda api: api.request("BREW", MAPS), 400),
    "a path in Latin-1": (lambda api: api.request("GET", "/api/v1/namespaces/caf\xe9/pods"), 400),
    "control characters in a header": (lambda api: api.request("GET", MAPS, "X-A: \x01"), 400),
    "hundreds of headers": (lambda api: api.request("GET", MAPS, *(f"X-{n}: a" for n in range(500))), 400),
    "a header without end": (lambda api: api.request("GET", MAPS, "X-A: " + "a" * 2 * MIB), 400),
    "a length below nothing": (lambda api: api.request("POST", MAPS, "Content-Length: -5"), 400),
    "two lengths": (lambda api: api.request("POST", MAPS, "Content-Length: 2", "Content-Length: 3"), 400),
    "chunks that are none": (
        lambda api: api.request("POST", MAPS, "Transfer-Encoding: chunked", body=b"zz\r\nabc\r\n"),
        400,
    ),
    "gzip that is none": (
        lambda api: api.request("POST", MAPS, "Content-Encoding: gzip", "Content-Length: 3", body=b"abc"),
        400,
    ),
    "an expectation": (lambda api: api.request("POST", MAPS, "Expect: tea", "Content-Length: 0"), 417),
    "the server as a whole": (lambda api: api.request("OPTIONS", "*"), 404),
    "a tunnel": (lambda api: api.request("CONNECT", "example.org:443"), 404),
    "a token of control characters": (
        lambda _: b"GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \x01\xff\r\n\r\n",
        400,
    ),
    "no token": (lambda _: f"GET {MAPS} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), 401),
    "a password": (
        lambda _: f"GET {MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic YTpi\r\n\r\n".encode(),
        401,
    ),
}


@pytest.mark.parametrize(("request_of", "code"), BYTES.values(), ids=BYTES)
def test_bytes(api: Api, request_of: Callable[[Api], bytes], code: int) -> None:
    assert api.send(request_of(api))[0] == code
    assert api.http.get("/readyz").text == "ok"


def test_no_tls(api: Api) -> None:
    with socket.create_connection(("127.0.0.1", api.process.access.api_port), timeout=30) as plain:
        plain.sendall(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" not in plain.recv(4096)
    assert api.http.get("/readyz").text == "ok"


def test_bodies_that_stop_half_way_change_nothing(api: Api) -> None:
    whole = encoded(a_map("half"))
    for length in (f"Content-Length: {len(whole)}", "Transfer-Encoding: chunked"):
        with api.connect() as connection:
            body = whole[:-10] if "Length" in length else b"%x\r\n%s" % (len(whole), whole[:-10])
            connection.sendall(api.request("POST", MAPS, f"Content-Type: {JSON}", length, body=body))
    assert api.http.get(f"{MAPS}/half").status_code == 404


def test_many_connections_that_say_nothing(api: Api) -> None:
    silent = [api.connect() for _ in range(50)]
    assert api.http.get(MAPS).status_code == 200
    for connection in silent:
        connection.close()


def test_a_listing_goes_on_where_its_page_ended(api: Api) -> None:
    for number in range(7):
        api.http.post(MAPS, json=a_map(f"page-{number}"))
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 3}
    while True:
        page = api.http.get(MAPS, params=query).json()
        seen += [item["metadata"]["name"] for item in page["items"]]
        if "continue" not in page["metadata"]:
            break
        assert page["metadata"]["remainingItemCount"] > 0
        query = {"limit": 3, "continue": page["metadata"]["continue"]}
    assert seen == sorted(seen)
    assert [name for name in seen if name.startswith("page-")] == [f"page-{n}" for n in range(7)]
    check(api.http.get(MAPS, params={**query, "resourceVersion": "1"}), 400, "BadRequest")

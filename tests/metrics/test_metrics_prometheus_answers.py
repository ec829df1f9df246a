"""The reader against a server that answers oddly, or not at all."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import trustme
from fake_prometheus import Fake, Reply, Request, matrix, serving, success, vector

from gpuworkshop.errors import (
    BadAnswer,
    MetricsError,
    NoData,
    PrometheusUnreachable,
    QueryError,
    SettingsError,
)
from gpuworkshop.metrics import PrometheusReader

ONE = {"metric": {"pod": "a"}, "value": [1700000000, "1"]}


@pytest.fixture
def fake() -> Iterator[Fake]:
    with serving(lambda _: vector(ONE)) as fake:
        yield fake


@pytest.fixture
def reader(fake: Fake) -> Iterator[PrometheusReader]:
    with PrometheusReader(fake.url, timeout_s=5) as reader:
        yield reader


def reply(fake: Fake, status: int, body: bytes) -> None:
    fake.answer = lambda _: (status, body)


@pytest.mark.parametrize("status", [200, 404, 502])
def test_a_page_that_is_no_json_is_quoted(fake: Fake, reader: PrometheusReader, status: int) -> None:
    reply(fake, status, b"<html><h1>Bad Gateway</h1></html>" + b" " * 5000)
    with pytest.raises(BadAnswer, match=f"HTTP {status}.*<h1>Bad Gateway") as caught:
        reader.latest("up")
    assert caught.value.status == status
    assert caught.value.response.startswith(b"<html>")
    assert len(str(caught.value)) < 600
    assert not reader.healthy()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"null",
        b"[]",
        b"{}",
        b'{"status":"success"}',
        b'{"status":"success","data":{"resultType":"vector","result":7}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1]}]}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}}',
        b'{"status":"success","data":{"resultType":"streams","result":[]}}',
        b"[" * 100_000,
    ],
)
def test_what_the_api_does_not_promise_is_a_bad_answer(
    fake: Fake, reader: PrometheusReader, body: bytes
) -> None:
    reply(fake, 200, body)
    with pytest.raises(BadAnswer):
        reader.latest("up")


def test_times_outside_of_the_range_are_a_bad_answer(fake: Fake, reader: PrometheusReader) -> None:
    fake.answer = lambda _: matrix({"metric": {}, "values": [[5, "1"]]})
    with pytest.raises(BadAnswer, match="outside"):
        reader.range("up", 100, 110, 1)


def test_an_answer_that_breaks_off(fake: Fake, reader: PrometheusReader) -> None:
    reply(fake, 200, b'{"status":"succ<cut>')
    with pytest.raises(BadAnswer, match=r"broke off.*succ"):
        reader.latest("up")


def test_a_server_that_does_not_answer_in_time(fake: Fake) -> None:
    def wait(_: Request) -> Reply:
        fake.released.wait()
        return success([])

    fake.answer = wait
    with (
        PrometheusReader(fake.url, timeout_s=0.2) as hasty,
        pytest.raises(PrometheusUnreachable, match=r"within 0\.2 s"),
    ):
        hasty.latest("up")


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with PrometheusReader(f"http://127.0.0.1:{port}") as reader:
        with pytest.raises(PrometheusUnreachable, match=f"127.0.0.1:{port}"):
            reader.range("up", 0, 10, 1)
        assert not reader.healthy()


@pytest.mark.parametrize("url", ["127.0.0.1:9090", "ftp://host", "http://", "http://[::1", ""])
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(SettingsError):
        PrometheusReader(url)


def test_prometheus_own_words_come_with_any_status(fake: Fake, reader: PrometheusReader) -> None:
    reply(fake, 422, b'{"status":"error","errorType":"execution","error":"too many samples"}')
    with pytest.raises(QueryError, match=r"execution: too many samples\nThe query was: up") as caught:
        reader.latest("up")
    assert caught.value.status == 422


def test_a_token_and_a_password_are_sent() -> None:
    def guarded(request: Request) -> Reply:
        given = request.headers.get("Authorization", "")
        return vector(ONE) if given in ("Bearer secret", "Basic bWU6cGFzcw==") else (401, b"Unauthorized")

    with serving(guarded) as fake:
        with PrometheusReader(fake.url) as nobody, pytest.raises(BadAnswer, match="token= or auth="):
            nobody.latest("up")
        address = fake.url.removeprefix("http://")
        with (
            PrometheusReader(fake.url, token="secret") as bearer,
            PrometheusReader(fake.url, auth=("me", "pass")) as basic,
            PrometheusReader(f"http://me:pass@{address}") as in_address,
        ):
            for reader in (bearer, basic, in_address):
                assert reader.latest("up").iloc[0, 0] == 1
            assert "pass" not in in_address.url


def test_tls_with_an_authority_of_ones_own(tmp_path: Path) -> None:
    authority = trustme.CA()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    ca = tmp_path / "the ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    with serving(lambda _: vector(ONE), tls) as fake:
        with PrometheusReader(fake.url, ca=ca) as trusting:
            assert trusting.latest("up").iloc[0, 0] == 1
        with PrometheusReader(fake.url) as strict, pytest.raises(PrometheusUnreachable, match="ca="):
            strict.latest("up")


def test_a_ca_file_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "no.pem").write_text("not a certificate")
    for name in ("no.pem", "absent.pem"):
        with pytest.raises(SettingsError, match=name):
            PrometheusReader("https://127.0.0.1", ca=tmp_path / name)


def test_one_connection_is_kept_and_nothing_is_packed_on_loopback(
    fake: Fake, reader: PrometheusReader
) -> None:
    reader.latest("up")
    reader.latest("up")
    assert len({request.client for request in fake.requests}) == 1
    assert {request.headers["Accept-Encoding"] for request in fake.requests} == {"identity"}


def test_the_path_of_a_proxy_is_kept() -> None:
    with serving(lambda _: vector(ONE)) as fake, PrometheusReader(f"{fake.url}/some/prefix/") as reader:
        reader.latest("up")
        assert fake.requests[0].path == "/some/prefix/api/v1/query"


def test_a_long_range_is_asked_for_in_parts(fake: Fake, reader: PrometheusReader) -> None:
    def part(request: Request) -> Reply:
        if not request.path.endswith("query_range"):
            return success([])
        start, end, step = (float(request.fields[name]) for name in ("start", "end", "step"))
        assert (end - start) / step < 11_000
        return matrix({"metric": {"pod": f"from-{start >= 1500}"}, "values": [[start, "1"], [end, "2"]]})

    fake.answer = part
    frame = reader.range("up", 1000.25, 26_000, 0.5)
    asked = sorted(float(each.fields["start"]) for each in fake.requests if "start" in each.fields)
    assert len(frame) == 50_000
    assert asked[0] == 1000.25
    assert frame.count().sum() == 2 * len(asked)
    assert frame.columns.get_level_values("pod").tolist() == ["from-False", "from-True"]


def test_warnings_and_native_histograms_are_told(fake: Fake, reader: PrometheusReader) -> None:
    histogram = {"metric": {"pod": "h"}, "histograms": [[100, {"count": "1", "sum": "2"}]]}
    line = {"metric": {"pod": "a"}, "values": [[100, "1"]]}
    fake.answer = lambda _: matrix(line, histogram, warnings=["slow"], infos=["not a counter"])
    frame = reader.range("up", 100, 110, 1)
    assert frame.shape == (11, 1)
    assert frame.attrs["warnings"] == ["slow", "1 native histograms left out"]
    assert frame.attrs["infos"] == ["not a counter"]
    fake.answer = lambda request: success(["up"]) if "values" in request.path else matrix(histogram)
    with pytest.raises(NoData, match="histogram_quantile"):
        reader.range("up", 100, 110, 1)


def test_what_was_simulated_is_told_by_gpu(fake: Fake, reader: PrometheusReader) -> None:
    def simulated(request: Request) -> Reply:
        if request.path.endswith("series"):
            notes = (("GPU-1", "H200 trace"), ("GPU-2", "H200 trace scaled to A10G"))
            return success([{"UUID": uuid, "note": note} for uuid, note in notes])
        uuid = request.fields["query"]
        labels = {} if uuid == "sum" else {"UUID": uuid}
        return vector({"metric": labels, "value": [1700000000, "1"]})

    fake.answer = simulated
    found = {uuid: reader.latest(uuid).attrs["simulated"] for uuid in ("GPU-1", "GPU-2", "GPU-3", "sum")}
    assert found == {
        "GPU-1": "H200 trace",
        "GPU-2": "H200 trace scaled to A10G",
        "GPU-3": "",
        "sum": "H200 trace, H200 trace scaled to A10G",
    }
    assert sum(request.path.endswith("series") for request in fake.requests) == 1


def test_series_of_unequal_times_share_an_index(fake: Fake, reader: PrometheusReader) -> None:
    first = {"metric": {"pod": "a"}, "values": [[1, "1"], [2.5, "NaN"], [3, "3"]]}
    second = {"metric": {"pod": "b"}, "values": [[2, "+Inf"]]}
    fake.answer = lambda _: matrix(first, second)
    frame = reader.latest("up[5s]")
    np.testing.assert_equal(frame.to_numpy(), [[1, np.nan], [np.nan, np.inf], [np.nan, np.nan], [3, np.nan]])


@pytest.mark.parametrize(
    ("start", "end", "step"),
    [(10, 0, 1), (0, 10, 0), (0, 10, "soon"), (0, 10, ""), (0, 10, -5), (float("nan"), 10, 1)],
)
def test_a_time_range_without_sense(
    reader: PrometheusReader, start: float, end: float, step: float | str
) -> None:
    with pytest.raises(MetricsError):
        reader.range("up", start, end, step)


@pytest.mark.parametrize(
    ("step", "asked"), [("1m30s", "90.000"), ("500ms", "0.500"), (2, "2.000"), ("1h", "3600.000")]
)
def test_steps(fake: Fake, reader: PrometheusReader, step: float | str, asked: str) -> None:
    fake.answer = lambda _: matrix()
    reader.range("up", 0, 10, step, empty_ok=True)
    assert fake.requests[0].fields["step"] == asked


@pytest.mark.parametrize(
    ("url", "about"),
    [
        ("http://xn--/", {}),
        ("http://example.test", {"token": "é"}),
    ],
)
def test_what_makes_no_connection_is_a_setting(url: str, about: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="opening a Prometheus"):
        PrometheusReader(url, token=about.get("token"))


def test_a_proxy_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:70")
    with pytest.raises(SettingsError, match="proxies in your environment"):
        PrometheusReader("http://example.test")

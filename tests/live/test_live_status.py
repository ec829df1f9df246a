"""The status line tells how fresh the picture is and what is wrong."""

from __future__ import annotations

import numpy as np
import pytest
from stored import START, labels, unreachable

from gpuworkshop.live.charts import Chart
from gpuworkshop.live.status import REMEMBERED_S, Status, clock, in_words


def chart(*pods: str) -> Chart:
    keys = [tuple(labels(pod, i).items()) for i, pod in enumerate(pods)]
    return Chart("power", "W", np.array([START]), keys, np.ones((1, len(pods))), {"simulated": "H200 trace"})


def test_it_starts_and_then_says_what_came() -> None:
    status = Status()
    assert "starting" in status.html(START)
    status.saw([chart("a", "b", "b")], START, None)
    assert status.html(START) == f"updated {clock(START)} · 2 pods · simulated: H200 trace"


def test_one_pod_is_no_plural() -> None:
    status = Status()
    status.saw([chart("a")], START, None)
    assert "1 pod ·" in status.html(START)


def test_it_says_what_it_waits_for() -> None:
    status = Status()
    status.saw([chart()], START, None)
    assert "no data yet for power" in status.html(START)


def test_a_fault_is_told_since_when_and_when_it_was_over() -> None:
    status = Status()
    status.saw([chart("a")], START, None)
    for second in range(1, 6):
        status.saw([], START + second, unreachable())
    line = status.html(START + 5)
    assert f"updated {clock(START)}" in line
    assert (
        f"since {clock(START + 1)}: Asking Prometheus: nothing answers at http://127.0.0.1:9. Start it."
        in line
    )
    status.saw([chart("a")], START + 6, None)
    assert f"back since {clock(START + 6)}, after an outage since {clock(START + 1)}" in status.html(
        START + 6
    )
    assert "outage" not in status.html(START + 6 + REMEMBERED_S)


def test_a_fault_cannot_smuggle_html_in() -> None:
    status = Status()
    status.saw([], START, RuntimeError("<script>"))
    assert "<script>" not in status.html(START)
    assert "&lt;script&gt;" in status.html(START)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("it is bad"), "ValueError: it is bad."),
        (KeyError(), "KeyError."),
        (unreachable(), "Asking Prometheus: nothing answers at http://127.0.0.1:9. Start it."),
    ],
)
def test_in_words(error: Exception, words: str) -> None:
    assert in_words(error) == words

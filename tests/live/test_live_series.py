"""Names, colours and keys of series."""

from __future__ import annotations

import numpy as np

from gpuworkshop.live.series import COLOURS, Key, Styles, keys_of, names, pod_of, style
from gpuworkshop.metrics.frames import columns


def key(**labels: str) -> Key:
    return tuple(labels.items())


A = key(namespace="default", pod="a", container="main", node="n1", gpu="0")
B = key(namespace="default", pod="b", container="main", node="n1", gpu="1")


def test_keys_leave_blanks_out_and_do_not_depend_on_the_levels_order() -> None:
    frame = columns([{"namespace": "ns", "pod": "a", "gpu": "0", "zone": "z", "arch": "x"}], ["zone", "arch"])
    other = columns([{"namespace": "ns", "pod": "a", "gpu": "0", "zone": "z", "arch": "x"}], ["arch", "zone"])
    assert keys_of(frame) == keys_of(other)
    assert dict(keys_of(frame)[0]) == {"namespace": "ns", "pod": "a", "gpu": "0", "arch": "x", "zone": "z"}


def test_names() -> None:
    idle = key(node="n1", gpu="2")
    assert list(names([A, B, idle]).values()) == [
        "default/a gpu 0",
        "default/b gpu 1",
        "n1 gpu 2, no pod",
    ]


def test_twins_are_told_apart_by_what_differs() -> None:
    other = key(namespace="default", pod="a", container="side", node="n1", gpu="0")
    assert names([A, other])[A] == "default/a gpu 0 (container main)"
    assert names([A, other])[other] == "default/a gpu 0 (container side)"


def test_names_of_aggregates() -> None:
    assert names([()])[()] == "all"
    assert names([key(modelName="H200")]) == {key(modelName="H200"): "modelName H200"}
    assert names([key(namespace="default", pod="a")]) == {key(namespace="default", pod="a"): "default/a"}


def test_pod_of() -> None:
    assert pod_of(A) == ("default", "a")
    assert pod_of(key(node="n1", gpu="2")) is None


def test_a_series_keeps_its_style_when_others_come_and_go() -> None:
    styles = Styles()
    styles.keep([A, B])
    styles.keep([B])
    assert styles.slot(B) == 1
    new = key(pod="new")
    styles.keep([new, B])
    assert (styles.slot(new), styles.slot(B)) == (0, 1)


def test_the_first_32_styles_are_all_different() -> None:
    assert len({style(slot) for slot in range(32)}) == 32
    assert [style(slot).colour for slot in range(8)] == list(COLOURS)


def test_slots_stay_few_while_pods_come_and_go() -> None:
    styles = Styles()
    for number in range(1000):
        keys = [key(pod=str(number)), key(pod=str(number + 1))]
        styles.keep(keys)
    assert np.max([styles.slot(each) for each in keys]) <= 1

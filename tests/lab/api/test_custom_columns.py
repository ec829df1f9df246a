"""The columns of custom kinds, and the JSONPath that fills them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuworkshop.lab.api import jsonpath, tables
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object, timestamp

NOW = 1_900_000_000.0
WAVE = Kind("example.org", "v1", "Wave", "waves")
OBJECT: Object = {
    "metadata": {
        "name": "w",
        "creationTimestamp": timestamp(NOW - 90),
        "labels": {"app.kubernetes.io/name": "waves", "plain": "yes"},
    },
    "spec": {"on": 5, "ratio": 0.5, "paused": False, "nothing": None, "steps": [{"n": 1}, {"n": 2}]},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": timestamp(NOW - 3600)},
            {"type": "Healthy", "status": "False"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.on", [5]),
        ("{.spec.on}", [5]),
        ("$.spec.on", [5]),
        ("spec.on", [5]),
        (".spec.steps[0].n", [1]),
        (".spec.steps[-1].n", [2]),
        (".spec.steps[7].n", []),
        (".spec.steps[*].n", [1, 2]),
        (".spec.steps.*.n", [1, 2]),
        (r".metadata.labels.app\.kubernetes\.io/name", ["waves"]),
        (".metadata.labels['app.kubernetes.io/name']", ["waves"]),
        ('.metadata.labels["plain"]', ["yes"]),
        (".metadata.labels.*", ["waves", "yes"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type=='Healthy')].status", ["False"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Healthy"]),
        (".spec.steps[?(@.n==2)].n", [2]),
        (".spec.steps[?( @.n == 3 )].n", []),
        (".spec.missing.deeper", []),
        (".spec.on.deeper", []),
        (".spec.on[0]", []),
        (".spec.nothing", [None]),
        (".spec.[", []),
        (".spec.steps[?(@.n>1)].n", []),
    ],
)
def test_paths(path: str, found: list[Any]) -> None:
    assert jsonpath.find(OBJECT, path) == found


@given(st.text(alphabet=".[]*?()@='\"\\ab0$-{}", max_size=15))
def test_any_path_leads_somewhere_or_nowhere(path: str) -> None:
    assert isinstance(jsonpath.find({"a": {"b": [0, {"a": 1}]}}, path), list)


@given(st.dictionaries(st.text(min_size=1, max_size=5).filter(lambda key: "'" not in key), st.integers()))
def test_every_key_can_be_quoted(obj: dict[str, int]) -> None:
    for key, value in obj.items():
        if "\\" not in key and "\n" not in key:
            assert jsonpath.find(obj, f"['{key}']") == [value]


def column(name: str, kind: str, path: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "jsonPath": path, **more}


def cell(kind: str, path: str) -> Any:
    found = tables.table(WAVE, [OBJECT], NOW, columns_of_crd=[column("X", kind, path)])
    return found["rows"][0]["cells"][1]


@pytest.mark.parametrize(
    ("kind", "path", "shown"),
    [
        ("integer", ".spec.on", 5),
        ("integer", ".spec.ratio", 0),
        ("integer", ".metadata.name", None),
        ("number", ".spec.ratio", 0.5),
        ("number", ".spec.paused", None),
        ("boolean", ".spec.paused", False),
        ("boolean", ".spec.on", None),
        ("string", ".metadata.name", "w"),
        ("string", ".spec.on", "5"),
        ("string", ".spec.paused", "false"),
        ("string", ".spec.steps[*].n", "1 2"),
        ("string", ".spec.steps[0]", '{"n":1}'),
        ("string", '.status.conditions[?(@.type=="Ready")].status', "True"),
        ("string", ".spec.missing", None),
        ("string", ".spec.nothing", None),
        ("date", ".metadata.creationTimestamp", "90s"),
        ("date", '.status.conditions[?(@.type=="Ready")].lastTransitionTime', "60m"),
        ("date", ".metadata.name", "<invalid>"),
        ("date", ".spec.on", None),
        ("unheard-of", ".spec.on", None),
    ],
)
def test_cells(kind: str, path: str, shown: Any) -> None:
    assert cell(kind, path) == shown


def test_columns_of_a_crd() -> None:
    of_crd = [
        column("On", "integer", ".spec.on", format="int32", description="Seconds with load."),
        column("Ratio", "number", ".spec.ratio", priority=1),
    ]
    found = tables.table(WAVE, [OBJECT], NOW, columns_of_crd=of_crd)
    name, on, ratio = found["columnDefinitions"]
    assert name["format"] == "name"
    assert on == {
        "name": "On",
        "type": "integer",
        "format": "int32",
        "description": "Seconds with load.",
        "priority": 0,
    }
    assert (ratio["name"], ratio["priority"]) == ("Ratio", 1)
    assert found["rows"][0]["cells"] == ["w", 5, 0.5]


def test_a_crd_without_columns_shows_the_age() -> None:
    found = tables.table(WAVE, [OBJECT], NOW, columns_of_crd=[])
    assert [definition["name"] for definition in found["columnDefinitions"]] == ["Name", "Age"]
    assert found["rows"][0]["cells"] == ["w", "90s"]

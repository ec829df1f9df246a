"""What prometheus_client renders is read back the same; noise is never more than an ExpositionError."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector, CollectorRegistry

from gpuworkshop.errors import ExpositionError
from gpuworkshop.metrics import parse_exposition

NAMES = st.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", fullmatch=True)
LABELS = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("le", "quantile")
)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# at a line's end a carriage return belongs to the line end
HELP = TEXT.map(lambda text: text.replace("\r", ""))
UNHURRIED = settings(deadline=None, max_examples=60, derandomize=True)
VALUES = st.floats(allow_nan=True, allow_infinity=True)


class Fixed(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self.families = list(families)

    def collect(self) -> Iterable[Metric]:
        return self.families


@st.composite
def rendered(draw: st.DrawFn) -> list[Metric]:
    families: list[Metric] = []
    for number in range(draw(st.integers(1, 4))):
        name = f"m{number}_{draw(NAMES).replace(':', '')}x"
        labels = draw(st.lists(LABELS, unique=True, max_size=3))
        kind = draw(st.sampled_from([GaugeMetricFamily, CounterMetricFamily]))
        family = kind(name, draw(HELP), labels=labels)
        rows = st.lists(st.tuples(*[TEXT] * len(labels)), unique=True, min_size=1, max_size=4)
        for values in draw(rows):
            moment = draw(st.none() | st.integers(0, 2_000_000_000))
            family.add_metric(values, draw(VALUES), timestamp=moment)
        families.append(family)
    histogram = HistogramMetricFamily("last", draw(HELP), labels=["a"])
    histogram.add_metric([draw(TEXT)], [("0.5", 1), ("+Inf", 2)], sum_value=3)
    return [*families, histogram]


def registry(families: list[Metric]) -> CollectorRegistry:
    found = CollectorRegistry(auto_describe=False)
    found.register(Fixed(families))
    return found


def comparable(name: str, labels: dict[str, str], value: float, moment: float | None) -> tuple[object, ...]:
    return name, tuple(sorted(labels.items())), "NaN" if math.isnan(value) else value, moment


@pytest.mark.parametrize("render", [generate_latest, openmetrics.generate_latest])
@UNHURRIED
@given(families=rendered())
def test_what_is_rendered_is_read_back(render: object, families: list[Metric]) -> None:
    assert callable(render)
    read = parse_exposition(render(registry(families)))
    given_samples = {
        comparable(sample.name, sample.labels, float(sample.value), sample.timestamp)  # type: ignore[arg-type]
        for family in families
        for sample in family.samples
    }
    assert {
        comparable(sample.name, sample.labels, sample.value, sample.timestamp)
        for family in read
        for sample in family.samples
    } == given_samples
    # blanks around a HELP text are no part of it
    assert [family.help for family in read] == [family.documentation.strip(" \t") for family in families]
    assert [family.type for family in read] == [family.type for family in families]


@UNHURRIED
@given(body=st.binary(max_size=200) | st.text(max_size=200))
def test_noise_is_an_exposition_error(body: bytes | str) -> None:
    read_or_refuse(body)


@UNHURRIED
@given(families=rendered(), at=st.floats(0, 1), put=st.binary(max_size=5), drop=st.integers(0, 9))
def test_damage_is_an_exposition_error(families: list[Metric], at: float, put: bytes, drop: int) -> None:
    body = generate_latest(registry(families))
    place = int(at * len(body))
    read_or_refuse(body[:place] + put + body[place + drop :])


def read_or_refuse(body: bytes | str) -> None:
    try:
        families = parse_exposition(body)
    except ExpositionError as error:
        assert error.line >= 1  # noqa: PT017 - either way is right
    else:
        assert all(family.name for family in families)

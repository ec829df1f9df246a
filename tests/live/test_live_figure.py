"""What the picture shows, looked at in its pixels."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from PIL import Image
from stored import START, labels, square

from gpuworkshop.live.charts import Chart
from gpuworkshop.live.figure import LiveFigure
from gpuworkshop.live.legend import WIDTH
from gpuworkshop.live.series import COLOURS, Key

Wave = Callable[[np.ndarray], np.ndarray]

TIMES = START + np.arange(121.0)
END = float(TIMES[-1])
PLOT = slice(44, 364)  # the rows of a single axes: above the legend, which has the colours too


def flat(value: float) -> Wave:
    return lambda times: np.full(len(times), value)


def chart(
    *waves: Callable[[np.ndarray], np.ndarray], unit: str = "%", title: str = "use", **attrs: Any
) -> Chart:
    keys: list[Key] = [tuple(labels(f"pod-{i:03}", i).items()) for i in range(len(waves))]
    values = np.array([wave(TIMES) for wave in waves]).reshape(len(waves), len(TIMES)).T
    return Chart(title, unit, TIMES, keys, values, attrs)


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"))


def draw(*charts: Chart, figure: LiveFigure | None = None) -> np.ndarray:
    return pixels((figure or LiveFigure()).draw(charts, START, END))


def where(picture: np.ndarray, colour: str) -> np.ndarray:
    """The (row, column) of each pixel of just this colour in the plot."""
    rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
    return np.argwhere((picture[PLOT] == rgb).all(axis=2))


def test_it_is_a_small_png_with_a_palette() -> None:
    png = LiveFigure().draw([chart(square, flat(50), flat(100))], START, END)
    picture = Image.open(BytesIO(png))
    assert (picture.format, picture.mode, picture.width) == ("PNG", "P", WIDTH)
    assert len(png) < 40_000


def test_colours_are_exactly_those_of_the_series_and_the_background_is_white() -> None:
    picture = draw(chart(*(flat(10.0 * i) for i in range(8))))
    assert all(len(where(picture, colour)) > 500 for colour in COLOURS)
    assert (picture[5, 5] == 255).all()


def test_a_higher_value_lies_higher() -> None:
    picture = draw(chart(flat(20), flat(80)))
    low, high = (where(picture, colour)[:, 0].mean() for colour in COLOURS[:2])
    assert low > high


def test_a_gap_has_no_line() -> None:
    def broken(times: np.ndarray) -> np.ndarray:
        return np.where((times > START + 40) & (times < START + 80), np.nan, 50.0)

    columns = where(draw(chart(broken)), COLOURS[0])[:, 1]
    from_left = (columns - 96) / (WIDTH - 96 - 44) * 120
    assert not ((from_left > 41) & (from_left < 79)).any()
    assert (from_left < 40).any()
    assert (from_left > 81).any()


def test_a_value_without_neighbours_is_a_dot() -> None:
    def alone(times: np.ndarray) -> np.ndarray:
        return np.where(times == START + 60, 50.0, np.nan)

    assert 10 < len(where(draw(chart(alone)), COLOURS[0])) < 100


def test_equal_lines_lie_side_by_side() -> None:
    picture = draw(chart(flat(100), flat(100), flat(100)))
    assert all(len(where(picture, colour)) > 500 for colour in COLOURS[:3])


def test_the_picture_changes_with_the_data_only() -> None:
    figure = LiveFigure()
    first = draw(chart(flat(50)), figure=figure)
    assert (draw(chart(flat(50)), figure=figure) == first).all()
    assert (draw(chart(flat(51)), figure=figure) != first).any()


def test_a_series_keeps_its_colour_when_another_goes() -> None:
    figure = LiveFigure()
    both = chart(flat(20), flat(80))
    draw(both, figure=figure)
    alone = Chart(both.title, both.unit, TIMES, both.keys[1:], both.values[:, 1:])
    picture = draw(alone, figure=figure)
    assert len(where(picture, COLOURS[1])) > 500
    assert not len(where(picture, COLOURS[0]))


def test_axes_stand_below_each_other_over_one_legend() -> None:
    one = draw(chart(square))
    three = draw(*(chart(square, title=title) for title in ("power", "tensor activity", "DRAM activity")))
    assert three.shape[0] > one.shape[0]
    assert three.shape[1] == one.shape[1]


def test_figures_of_back_filled_and_simulated_data_say_so() -> None:
    plain = draw(chart(flat(50)))
    until = datetime.fromtimestamp(START + 60, UTC)
    marked = draw(chart(flat(50), backfilled_before=until))
    shaded = (plain != marked).any(axis=2)[PLOT]
    assert shaded[:, 100:480].mean() > 0.8
    assert not shaded[:, 520:].any()
    assert (plain != marked).any(axis=2)[:40, 600:].any()
    said = (plain != draw(chart(flat(50), simulated="H200 trace"))).any(axis=2)
    assert said[:40, 700:].any()
    assert not said[40:].any()


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([np.inf, -np.inf, 3.0], id="infinite"),
        pytest.param([np.nan, np.nan, np.nan], id="nothing"),
        pytest.param([1e15, 2e15, 0.0], id="huge"),
        pytest.param([-50.0, -60.0, 20.0], id="negative"),
        pytest.param([0.0, 0.0, 0.0], id="zero"),
    ],
)
def test_any_values_can_be_drawn(values: Sequence[float]) -> None:
    assert draw(chart(lambda times: np.resize(values, len(times)), unit="B/s")).shape[1] == WIDTH


def test_no_series_says_that_there_is_no_data_yet() -> None:
    middle = slice(130, 190), slice(440, 580)
    assert draw(chart())[PLOT][middle].min() < 150
    assert draw(chart(flat(0)))[PLOT][middle].min() > 200


@pytest.mark.parametrize("series", [9, 33, 200])
def test_many_series(series: int) -> None:
    picture = draw(chart(*(flat(100 * i / series) for i in range(series))))
    assert picture.shape[0] < 700
    assert all(len(where(picture, colour)) for colour in COLOURS)


def test_times_are_those_of_the_clock_on_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn_in(zone: str) -> np.ndarray:
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        return draw(chart(flat(50)))

    try:
        assert (drawn_in("UTC")[364:400] != drawn_in("Asia/Kolkata")[364:400]).any()
    finally:
        monkeypatch.undo()
        time.tzset()

"""A feed asks for what is missing, once, and loses nothing that is stored."""

from __future__ import annotations

import numpy as np
import pytest
from stored import START, StoredSamples, labels, square, two_pods, unreachable

from gpuworkshop.errors import PrometheusUnreachable
from gpuworkshop.live.charts import Panel
from gpuworkshop.live.feed import SETTLING, Feed


@pytest.fixture
def source() -> StoredSamples:
    return two_pods()


@pytest.fixture
def feed(source: StoredSamples) -> Feed:
    return Feed(Panel("GPU utilisation", "%", "use"), source, every_s=1.0, window_s=60.0)


def spans(source: StoredSamples) -> list[float]:
    return [end - start for _, start, end in source.asked]


def test_the_first_poll_fills_the_window_and_the_next_ask_for_what_is_newer(
    feed: Feed, source: StoredSamples
) -> None:
    for second in range(4):
        feed.poll(START + second + 0.3)
    assert spans(source) == [60, SETTLING, SETTLING, SETTLING]
    assert source.asked[-1] == ("use", START + 3 - SETTLING, START + 3)
    chart = feed.chart()
    assert chart.times.tolist() == [START + second for second in range(-57, 4)]
    np.testing.assert_array_equal(chart.values[:, 0], square(chart.times))


def test_times_are_multiples_of_the_step(source: StoredSamples) -> None:
    feed = Feed(Panel("use", "%", "use"), source, every_s=5.0, window_s=60.0)
    feed.poll(START + 3.7)
    assert source.asked == [("use", START - 60, START)]


def test_after_an_outage_the_gap_is_filled_by_one_query(feed: Feed, source: StoredSamples) -> None:
    feed.poll(START)
    source.fault = unreachable()
    for second in range(1, 21):
        with pytest.raises(PrometheusUnreachable):
            feed.poll(START + second)
    assert np.isnan(feed.chart().values[-20:]).all()
    source.fault = None
    source.asked.clear()
    feed.poll(START + 21)
    assert source.asked == [("use", START + 1 - SETTLING, START + 21)]
    chart = feed.chart()
    assert not np.isnan(chart.values).any()
    np.testing.assert_array_equal(chart.values[:, 0], square(chart.times))


def test_after_an_outage_longer_than_the_window_it_is_filled_anew(feed: Feed, source: StoredSamples) -> None:
    feed.poll(START)
    feed.poll(START + 1000)
    assert spans(source) == [60, 60]
    assert not np.isnan(feed.chart().values).any()


def test_where_the_source_has_nothing_there_is_a_gap(feed: Feed, source: StoredSamples) -> None:
    def broken_off(times: np.ndarray) -> np.ndarray:
        return np.where((times > START - 30) & (times < START - 20), np.nan, 98.0)

    source.series = [(labels("a"), broken_off)]
    feed.poll(START)
    chart = feed.chart()
    missing = chart.times[np.isnan(chart.values[:, 0])]
    assert missing.tolist() == [START - 29 + second for second in range(9)]


def test_a_pod_that_ends_leaves_its_past_and_then_the_chart(feed: Feed, source: StoredSamples) -> None:
    feed.poll(START)
    del source.series[1]
    feed.poll(START + 10)
    assert len(feed.chart().keys) == 2
    assert np.isnan(feed.chart().values[-1, 1])
    feed.poll(START + 59)
    assert len(feed.chart().keys) == 2
    feed.poll(START + 61)
    assert len(feed.chart().keys) == 1


def test_a_longer_window_asks_for_its_older_part_only(feed: Feed, source: StoredSamples) -> None:
    for second in range(100):
        feed.poll(START + second)
    source.asked.clear()
    feed.resize(300.0)
    feed.poll(START + 99)
    assert source.asked[0] == ("use", START + 99 - 300, START + 99 - 61)
    assert not np.isnan(feed.chart().values).any()


def test_shorter_and_longer_again_loses_nothing(feed: Feed, source: StoredSamples) -> None:
    feed.poll(START)
    feed.resize(10.0)
    feed.poll(START + 1)
    feed.resize(60.0)
    feed.poll(START + 2)
    chart = feed.chart()
    assert len(chart.times) == 61
    assert not np.isnan(chart.values).any()


def test_late_samples_replace_what_was_read_too_early(feed: Feed, source: StoredSamples) -> None:
    value = 1.0
    source.series = [(labels("a"), lambda times: np.full(len(times), value))]
    feed.poll(START)
    value = 2.0
    feed.poll(START + 1)
    assert feed.chart().values[-5:, 0].tolist() == [1, 2, 2, 2, 2]


def test_no_series_at_all_is_no_error(feed: Feed, source: StoredSamples) -> None:
    source.series = []
    feed.poll(START)
    assert not feed.chart().has_data
    assert feed.chart().frame().empty

"""What it costs a month, against the arithmetic of the price list."""

from __future__ import annotations

import pytest
from cwagent_cases import GAUGE, JOB, UTIL, agent, case, declaration

from gpuworkshop.cwagent import prices
from gpuworkshop.cwagent.cost import Cost, cost_of

METRICS = [UTIL, *(f"DCGM_FI_{n}" for n in range(13))]


def page(pods: int) -> str:
    return "".join(
        f"# TYPE {name} gauge\n"
        + "".join(
            f'{name}{{gpu="{n % 8}",UUID="GPU-{n}",namespace="team",pod="train-{n}"}} 1\n'
            for n in range(pods)
        )
        for name in METRICS
    )


def cost(pods: int, *, interval: str = "60s", sets: int = 1) -> Cost:
    dimensions = [["namespace", "pod", "gpu"], ["NodeName", "pod", "gpu"]][:sets]
    built = case(page(pods), JOB.replace("10s", interval), agent(declaration(dimensions=dimensions)))
    found = cost_of(built)
    assert found
    return found


def test_a_hundred_pods_with_14_metrics() -> None:
    found = cost(100)
    assert (found.pods, found.gpus, found.metrics, found.metrics_month) == (100, 100, 1400, 420.0)
    assert found.metrics_month / 730 == pytest.approx(0.575, abs=0.001)
    assert found.total_month == pytest.approx(found.metrics_month + found.logs_month, abs=0.01)


def test_gpus_are_counted_by_their_uuid() -> None:
    found = cost_of(case(page(2) + '# TYPE share gauge\nshare{gpu="0"} 1\n'))
    assert found
    assert found.gpus == 2


def test_a_second_set_of_dimensions_costs_as_much_again() -> None:
    assert cost(10, sets=2).metrics_month == 2 * cost(10).metrics_month


def test_logs_grow_with_the_rate_of_scrapes_and_metrics_do_not() -> None:
    seldom, often = cost(10), cost(10, interval="10s")
    assert often.metrics_month == seldom.metrics_month
    assert often.log_gigabytes_month == pytest.approx(6 * seldom.log_gigabytes_month, rel=0.01)


def test_what_is_dropped_costs_nothing() -> None:
    found = cost_of(case(GAUGE, JOB.replace(".*dcgm-exporter", "no")))
    assert found
    assert found.total_month == 0


def test_without_the_agent_there_is_no_cost() -> None:
    from gpuworkshop.cwagent.explanation import explain

    assert explain(page(1), JOB).cost is None


@pytest.mark.parametrize(
    ("count", "dollars"),
    [(0, 0), (10_000, 3000), (10_001, 3000.10), (250_000, 27_000), (1_000_001, 64_500.02)],
)
def test_the_tiers(count: int, dollars: float) -> None:
    assert prices.load().metrics(count) == pytest.approx(dollars)


def test_the_prices_say_where_from_and_when() -> None:
    table = prices.load()
    assert table.source
    assert table.checked >= "2026"
    assert table.tiers[0] == (10_000, 0.30)

"""The catalogue: every quantity, its names in each release, and how it is found and asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuworkshop.errors import UnknownQuantity
from gpuworkshop.metrics import Quantity, catalog, parse_exposition

DATA = Path(__file__).resolve().parent.parent / "data"
DEFAULT_FIELDS = 26 - 1  # dcgm-exporter's default counters, without the one that is a label
PROFILING_BESIDE = 5  # SM_ACTIVE, SM_OCCUPANCY, FP64, FP32, FP16


def test_every_default_field_of_the_exporter_is_there() -> None:
    old = [each.names["4.8.4"] for each in catalog.quantities() if "4.8.4" in each.names]
    assert len(old) == len(set(old)) == DEFAULT_FIELDS + PROFILING_BESIDE
    assert [each.key for each in catalog.quantities() if "4.8.4" not in each.names] == ["fb_capacity"]
    assert all("4.9" in each.names for each in catalog.quantities())


def test_every_metric_of_a_real_page_is_known() -> None:
    page = parse_exposition((DATA / "metrics-dcgm-3.1.prom").read_bytes())
    unknown = [family.name for family in page if not catalog.unit_of(family.name)]
    assert unknown == []


@pytest.mark.parametrize("quantity", catalog.quantities(), ids=lambda each: each.key)
def test_each_is_found_by_all_it_is_called(quantity: Quantity) -> None:
    bare = [name.removeprefix("DCGM_FI_") for name in quantity.names.values()]
    for text in (quantity.key, quantity.title, *quantity.aliases, *quantity.names.values(), *bare):
        assert catalog.find(text) is quantity
        assert catalog.find(text.upper()) is quantity
    assert quantity.meaning.endswith(".")
    assert quantity.unit


@pytest.mark.parametrize("quantity", catalog.quantities(), ids=lambda each: each.key)
def test_a_unit_changes_with_its_factor(quantity: Quantity) -> None:
    for field in quantity.fields.values():
        assert (field.unit == quantity.unit) == (field.factor == 1)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("gpu utilisation", "gpu_util"),
        ("GPU utilization", "gpu_util"),
        ("  gpu-util ", "gpu_util"),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", "gpu_util"),
        ("tensor activity", "tensor_activity"),
        ("power", "power"),
        ("DRAM activity", "dram_activity"),
        ("temperature", "gpu_temperature"),
        ("gpu_temp", "gpu_temperature"),
    ],
)
def test_what_people_say(text: str, key: str) -> None:
    assert catalog.find(text).key == key


def test_an_unknown_one_names_those_near() -> None:
    with pytest.raises(UnknownQuantity, match="did you mean GPU utilisation") as caught:
        catalog.find("gpu utilsation")
    assert caught.value.near[0] == "GPU utilisation"
    with pytest.raises(UnknownQuantity, match=r"catalog\.quantities"):
        catalog.find("§§§")


@pytest.mark.parametrize(
    ("key", "promql"),
    [
        ("gpu_util", "DCGM_FI_DEV_GPU_UTIL or (DCGM_FI_DEV_GPU_UTIL_RATIO * 100)"),
        ("power", "DCGM_FI_DEV_POWER_USAGE or DCGM_FI_DEV_BOARD_POWER_WATTS"),
        ("sm_clock", "DCGM_FI_DEV_SM_CLOCK or (DCGM_FI_DEV_SM_CLOCK_HERTZ / 1000000)"),
        ("energy", "(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION / 1000) or DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL"),
        ("fb_used", "DCGM_FI_DEV_FB_USED or (DCGM_FI_DEV_FB_USED_BYTES / 1048576)"),
        ("pcie_sent", "DCGM_FI_PROF_PCIE_TX_BYTES"),
    ],
)
def test_promql_asks_for_every_name_in_one_unit(key: str, promql: str) -> None:
    assert catalog.find(key).promql() == promql


def test_matchers_go_to_every_name() -> None:
    wanted = 'DCGM_FI_DEV_GPU_UTIL{pod="a"} or (DCGM_FI_DEV_GPU_UTIL_RATIO{pod="a"} * 100)'
    assert catalog.find("gpu_util").promql('pod="a"') == wanted
    assert catalog.find("gpu_util").promql('{pod="a"}') == wanted
    assert catalog.find("pcie_sent").promql('pod=~"a{2}"') == 'DCGM_FI_PROF_PCIE_TX_BYTES{pod=~"a{2}"}'


def test_units_by_metric_name() -> None:
    assert catalog.unit_of("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION") == "mJ"
    assert catalog.unit_of("DCGM_FI_DEV_FB_USED_BYTES") == "bytes"
    assert catalog.unit_of("up") == ""

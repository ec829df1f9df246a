"""Reading exposition text: real pages, the formats' corners, and pages that are broken."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from gpuworkshop.errors import ExpositionError
from gpuworkshop.metrics import Family, Sample, parse_exposition

DATA = Path(__file__).resolve().parent.parent / "data"


def only(body: bytes | str) -> Sample:
    [family] = parse_exposition(body)
    [sample] = family.samples
    return sample


def test_a_real_page_keeps_dcgms_names() -> None:
    families = {
        family.name: family for family in parse_exposition((DATA / "metrics-dcgm-3.1.prom").read_bytes())
    }
    assert len(families) == 23
    energy = families["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]
    assert (energy.type, energy.help) == ("counter", "Total energy consumption since boot (in mJ).")
    assert [sample.name for sample in energy.samples] == ["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"]
    [power] = families["DCGM_FI_DEV_POWER_USAGE"].samples
    assert power.value == 299.437
    assert power.labels["modelName"] == "NVIDIA A10G"
    assert power.labels["pod"] == "gpu-burn-c68d8c774-ltg9s"


def test_escapes_braces_and_commas_in_values() -> None:
    sample = only(r'a{path="C:\\dir",say="\"}, {\"",lines="one\ntwo",odd="\q" , } 1' + "\n")
    assert sample.labels == {"path": "C:\\dir", "say": '"}, {"', "lines": "one\ntwo", "odd": r"\q"}


@pytest.mark.parametrize("blank", ["a 1", "a{} 1", " \ta 1"[2:], "a{ } 1", "a\t1", "a 1 \t", "a{}1"])
def test_blanks_where_the_format_allows_them(blank: str) -> None:
    assert only(blank + "\n") == Sample("a", {}, 1.0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("+Inf", math.inf),
        ("-inf", -math.inf),
        ("1e-3", 0.001),
        ("-0.5", -0.5),
        (".5", 0.5),
        ("15782796862", 15782796862),
    ],
)
def test_values(text: str, value: float) -> None:
    assert only(f"a {text}\n").value == value
    assert math.isnan(only("a NaN\n").value)


def test_timestamps_are_seconds_in_both_formats() -> None:
    assert only("a 1 1700000000123\n").timestamp == 1700000000.123
    assert only("a 1 1700000000.123\n# EOF\n").timestamp == 1700000000.123
    assert only("a 1\n").timestamp is None


def test_help_type_and_unit() -> None:
    text = (
        '# HELP a_seconds one\\ntwo \\\\ "x"\n# TYPE a_seconds gauge\n# UNIT a_seconds seconds\na_seconds 1\n'
    )
    assert parse_exposition(text + "# a comment\n#\n\n# EOF\n") == [
        Family("a_seconds", "gauge", 'one\ntwo \\ "x"', "seconds", [Sample("a_seconds", {}, 1.0)])
    ]


def test_samples_without_a_type_are_untyped() -> None:
    assert [(family.name, family.type) for family in parse_exposition("b_count 1\na 2\n")] == [
        ("b_count", "untyped"),
        ("a", "untyped"),
    ]


def test_histograms_and_summaries_are_one_family() -> None:
    families = parse_exposition(
        "# TYPE h histogram\n"
        'h_bucket{le="1"} 1\nh_bucket{le="+Inf"} 2\nh_sum 3\nh_count 2\n'
        '# TYPE s summary\ns{quantile="0.5"} 1\ns_sum 2\ns_count 2\n'
        "# TYPE g gauge\ng 1\ng_sum 9\n"
    )
    assert [(family.name, len(family.samples)) for family in families] == [
        ("h", 4),
        ("s", 3),
        ("g", 1),
        ("g_sum", 1),
    ]


def test_openmetrics_counters_and_exemplars() -> None:
    [family] = parse_exposition(
        '# TYPE c counter\nc_total{a="#"} 5 # {trace_id="a } b"} 0.5 1700000000.1\nc_created 1\n# EOF\n'
    )
    assert [(sample.name, sample.value) for sample in family.samples] == [("c_total", 5), ("c_created", 1)]
    assert family.samples[0].labels == {"a": "#"}


def test_families_in_pieces_and_repeated_types() -> None:
    [a, b] = parse_exposition("# TYPE a gauge\na 1\nb 2\n# TYPE a gauge\na 3\n")
    assert [sample.value for sample in a.samples] == [1, 3]
    assert b.name == "b"


def test_windows_line_ends_and_a_byte_order_mark() -> None:
    [family] = parse_exposition('\ufeff# HELP a x\r\n# TYPE a gauge\r\na{b="c"} 1\r\n'.encode())
    assert (family.type, family.help, family.samples[0].labels) == ("gauge", "x", {"b": "c"})


def test_samples_do_not_share_their_labels() -> None:
    text = 'a{pod="x"} 1\nb{pod="x"} 2\n'
    [first, second] = parse_exposition(text)
    first.samples[0].labels["pod"] = "changed"
    assert second.samples[0].labels == only('c{pod="x"} 1').labels == {"pod": "x"}


def test_nothing_is_no_families() -> None:
    assert parse_exposition(b"") == parse_exposition("\n\n") == []


@pytest.mark.parametrize(
    ("body", "line", "said"),
    [
        (b'a 1\nb{c="\xff"} 2\n', 2, "UTF-8"),
        ("a 1\nDCGM_FI_DEV_GPU_UT", 2, "cut off"),
        ('a 1\n\nb{c="d', 3, "cut off"),
        ("<html>\n", 1, "neither a sample"),
        ('a{b="c",b="d"} 1\n', 1, "label b twice"),
        ('a{b="c" d="e"} 1\n', 1, "labels that cannot be read"),
        ("a{b=c} 1\n", 1, "labels that cannot be read"),
        ('a{b="say "this""} 1\n', 1, "labels that cannot be read"),
        ('a{2b="c"} 1\n', 1, "labels that cannot be read"),
        ("a{,} 1\n", 1, "labels that cannot be read"),
        ("a one\n", 1, "'one' where a number belongs"),
        ("a 1_000\n", 1, "neither a sample"),
        ("a ١\n", 1, "neither a sample"),
        ("a 1 soon\n", 1, "'soon' where a number belongs"),
        ("a 1 2 3\n", 1, "neither a sample"),
        ('a 1 # {b="c",b="d"} 1\n', 1, "label b twice"),
        ("a 1 # a comment\n", 1, "neither a sample"),
        ("9a 1\n", 1, "neither a sample"),
        ("# TYPE a thing\n", 1, "does not exist, 'thing'"),
        ("# TYPE a gauge\n# TYPE a counter\n", 2, "second TYPE for a"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(body: bytes | str, line: int, said: str) -> None:
    with pytest.raises(ExpositionError, match=said) as caught:
        parse_exposition(body)
    assert caught.value.line == line
    assert f"line {line} " in str(caught.value)


def test_a_long_line_is_quoted_in_part() -> None:
    with pytest.raises(ExpositionError) as caught:
        parse_exposition("a{" * 100_000)
    assert len(str(caught.value)) < 500

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuworkshop.lab.api.quantities import canonical, format_quantity, parse

SUFFIXES = ("", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", "0"),
        ("100m", "0.1"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("+2k", "2000"),
        ("-1Ki", "-1024"),
        ("1Gi", str(1024**3)),
        ("1.5Gi", str(1536 * 1024**2)),
        ("0.1Ki", "102.4"),
        ("1e3", "1000"),
        ("12E-1", "1.2"),
        ("1E", "1000000000000000000"),
        ("250u", "0.00025"),
        (2, "2"),
        (0.5, "0.5"),
    ],
)
def test_parse_is_exact(text: str | float, value: str) -> None:
    assert parse(text) == Decimal(value)


def test_too_small_is_rounded_up_and_too_large_is_capped() -> None:
    assert parse("1e-12") == Decimal("1e-9")
    assert parse("-0.1n") == Decimal("-1e-9")
    assert parse("1e999999999") == 2**63 - 1
    assert parse("-100000E") == -(2**63 - 1)


@pytest.mark.parametrize(
    "text", ["", ".", "1.2.3", "1kk", "1 Gi", " 1", "1Gi ", "abc", "Mi", "--1", "1e", "١", "9" * 300]
)
def test_what_is_no_quantity(text: str) -> None:
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        parse(text)
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        canonical(text)


@pytest.mark.parametrize("value", [True, None, [], {}])
def test_other_types_are_no_quantities(value: object) -> None:
    with pytest.raises(ValueError, match="quantities must match"):
        parse(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("0.5", "500m"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("0.5Gi", "512Mi"),
        ("1500Mi", "1500Mi"),
        ("512", "512"),
        ("1024", "1024"),
        ("0.5Ki", "512"),
        ("0.1Ki", "102400m"),
        ("2000", "2k"),
        ("1500k", "1500k"),
        ("1e3", "1e3"),
        ("12E6", "12e6"),
        ("100e1", "1e3"),
        ("0.0001", "100u"),
        ("-0", "0"),
        ("0Gi", "0"),
        (4, "4"),
        (1.5, "1500m"),
    ],
)
def test_canonical(text: str | float, written: str) -> None:
    assert canonical(text) == written


def test_a_number_is_written_as_its_model() -> None:
    assert format_quantity(2 * 1024**3, "1Gi") == "2Gi"
    assert format_quantity(2 * 1024**3, "1G") == "2147483648"
    assert format_quantity(Decimal("1.25"), "1") == "1250m"
    assert format_quantity(3000, "1e3") == "3e3"
    assert format_quantity(8) == "8"


quantities = st.builds(
    lambda number, places, suffix: f"{Decimal(number).scaleb(-places):f}{suffix}",
    st.integers(-(10**9), 10**9),
    st.integers(0, 3),
    st.sampled_from(SUFFIXES),
)


@given(quantities)
def test_the_canonical_form_keeps_the_value_and_is_a_fixed_point(text: str) -> None:
    written = canonical(text)
    assert parse(written) == parse(text)
    assert canonical(written) == written


@given(st.text(max_size=20))
def test_any_text_is_a_quantity_or_refused(text: str) -> None:
    try:
        parsed = parse(text)
    except ValueError:
        return
    assert parse(format_quantity(parsed)) == parsed

"""The counters CSV: what dcgm-exporter takes is taken, what it refuses is refused, with the line."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from click.testing import CliRunner

from gpuworkshop.errors import CountersError
from gpuworkshop.exporter import counters
from gpuworkshop.exporter.command import exporter
from gpuworkshop.exporter.counters import Counters, default, parse
from gpuworkshop.exporter.devices import Device, Reading
from gpuworkshop.exporter.fields import Field
from gpuworkshop.exporter.rendering import Renderer
from gpuworkshop.exporter.sampler import Held, Snapshot
from gpuworkshop.exporter.schema import SCHEMAS, Schema

OLD, NEW = SCHEMAS["4.8.4"], SCHEMAS["4.9"]
DEVICE = Device(0, "GPU-1", "NVIDIA H200", "00000000:01:00.0", "580")


def names(found: Counters) -> list[str]:
    return [metric.name for metric in found.metrics]


def rendered(found: Counters) -> str:
    reading = Reading(DEVICE, {Field.GPU_UTIL: 0.5, Field.FB_USED: 2.9 * 2**20, Field.POWER: 100.0})
    return Renderer(OLD, "node-1", found).render(Snapshot(1.0, 0.0, 0.1, [Held(reading, ())], [])).decode()


def test_order_type_and_help_are_the_files() -> None:
    text = """# a comment
DCGM_FI_DEV_POWER_USAGE ,  counter ,  Power, as I call it.

DCGM_FI_DEV_GPU_UTIL, gauge, "Busy, or not."
DCGM_FI_DRIVER_VERSION, label, Driver
"""
    text = text.replace("Power, as", "Power as")
    found = parse(text, OLD)
    assert names(found) == ["DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_DEV_GPU_UTIL"]
    shown = rendered(found)
    assert "# HELP DCGM_FI_DEV_POWER_USAGE Power as I call it.\n" in shown
    assert "# TYPE DCGM_FI_DEV_POWER_USAGE counter\n" in shown
    assert "# HELP DCGM_FI_DEV_GPU_UTIL Busy, or not.\n" in shown
    assert "FB_USED" not in shown
    assert 'DCGM_FI_DRIVER_VERSION="580"' in shown


def test_the_drivers_version_is_a_label_only_if_the_file_says_so() -> None:
    assert "DCGM_FI_DRIVER_VERSION" not in rendered(parse("DCGM_FI_DEV_GPU_UTIL, gauge, a", OLD))
    assert "DCGM_FI_DRIVER_VERSION" in rendered(default(OLD))


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_the_defaults_written_as_a_file_are_the_defaults(schema: Schema) -> None:
    rows = [f'{m.name}, {m.type}, "{m.help}"' for m in schema.metrics]
    rows.append(f"{schema.driver_label}, label, Driver")
    assert parse("\n".join(rows), schema) == default(schema)
    assert len(rows) == 26 + (schema is NEW)


@pytest.mark.parametrize(
    ("row", "seen", "todo"),
    [
        ("DCGM_FI_DEV_GPU_UTIL, gauge", "2 values", "quotation marks"),
        ("DCGM_FI_DEV_GPU_UTIL, gauge, a, b", "4 values", "quotation marks"),
        ("DCGM_FI_DEV_GPU_UTIL, gorge, a", "'gorge' is no type", "gauge, counter"),
        ("DCGM_FI_DEV_GPU_UTL, gauge, a", "'DCGM_FI_DEV_GPU_UTL' is no field", "DCGM_FI_DEV_GPU_UTIL?"),
        ("hello, gauge, a", "'hello' is no field", "DCGM's list"),
        (" # not a comment, gauge, a", "is no field", ""),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, a", "name of release 4.9, not of 4.8.4", "GPU_UTIL"),
        ('"DCGM_FI_DEV_GPU_UTIL, gauge, a', "unexpected end", "close"),
        ("\0, gauge, a", "line 3", ""),
    ],
)
def test_a_wrong_row_is_refused_with_its_line(row: str, seen: str, todo: str) -> None:
    with pytest.raises(CountersError) as caught:
        parse(f"# one\n\n{row}\n", OLD, "mine.csv")
    assert "mine.csv, line 3" in caught.value.seen
    assert seen in caught.value.seen
    assert todo in caught.value.todo


def test_what_cannot_be_served_is_left_out_and_told(caplog: pytest.LogCaptureFixture) -> None:
    text = """DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, Errors
DCGM_FI_DEV_GPU_UTIL, gauge, a
DCGM_FI_DEV_GPU_UTIL, gauge, again
DCGM_FI_DEV_SERIAL, label, Serial number
DCGM_FI_DEV_POWER_USAGE, histogram, Power
"""
    caplog.set_level(logging.WARNING)
    found = parse(text, OLD)
    assert names(found) == ["DCGM_FI_DEV_GPU_UTIL"]
    assert "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL is not exported: not read by this exporter" in caplog.text
    told = {line for line in rendered(found).splitlines() if line.startswith("gpuworkshop_field_unavail")}
    assert told == {
        f'gpuworkshop_field_unavailable{{field="DCGM_FI_{field}",reason="{reason}"}} 1'
        for field, reason in (
            ("DEV_ECC_DBE_VOL_TOTAL", counters.NOT_READ),
            ("DEV_GPU_UTIL", counters.TWICE),
            ("DEV_SERIAL", counters.NO_SUCH_LABEL),
            ("DEV_POWER_USAGE", counters.NO_SUCH_TYPE),
        )
    }


def test_mebibytes_are_whole_ones_that_are_full() -> None:
    assert "DCGM_FI_DEV_FB_USED{" in (text := rendered(default(OLD)))
    assert [line.split()[-1] for line in text.splitlines() if line.startswith("DCGM_FI_DEV_FB_USED")] == ["2"]


@pytest.mark.parametrize("content", [b"\xff\xfe", None, b"#" * 1_000_001])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "counters.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CountersError, match=r"counters\.csv"):
        counters.read(path, OLD)


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, a\r\n", encoding="utf-8-sig")
    assert names(counters.read(path, OLD)) == ["DCGM_FI_DEV_GPU_UTIL"]


def test_the_command_refuses_extended_beside_a_file(tmp_path: Path) -> None:
    path = tmp_path / "counters.csv"
    path.write_text("DCGM_FI_DEV_GPU_UTIL, gauge, a\n", encoding="utf-8")
    done = CliRunner().invoke(exporter, ["-f", str(path), "--extended"])
    assert done.exit_code == 2
    assert "--collectors" in done.output

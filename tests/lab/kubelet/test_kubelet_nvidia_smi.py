"""The simulated nvidia-smi: what it prints, by option, and what it refuses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from kubelet_lab import NODE_NAME, KubeletLab, in_lab, pause

from gpuworkshop.lab.kubelet import nvidia_smi
from gpuworkshop.lab.simulation import SimulatedNode

ONE = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
GPUS = "".join(
    f"- {{index: {i}, uuid: GPU-{i}, model: {model}}}\n" for i, model in enumerate(("A10G", "T4", "L4"))
)
USUAL = (
    "index,name,uuid,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu,clocks.sm,"
    "driver_version"
)
TITLES = (
    "index, name, uuid, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], "
    "temperature.gpu, clocks.current.sm [MHz], driver_version"
)


@pytest.fixture
def gpu_file(tmp_path: Path) -> str:
    file = tmp_path / "node.yaml"
    file.write_text(GPUS, encoding="utf-8")
    return str(file)


@pytest.fixture
def no_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Readings as the exporter's, without a process."""
    reading = {"UUID": "GPU-0", "modelName": "NVIDIA A10G", "DCGM_FI_DRIVER_VERSION": "580.95.05"}
    reading |= {
        "GPU_UTIL": "97",
        "FB_USED": "20501",
        "FB_FREE": "2527",
        "POWER_USAGE": "299.1",
        "GPU_TEMP": "62",
    }
    monkeypatch.setattr(
        nvidia_smi, "read", lambda *_: {"GPU-0": reading, "GPU-1": {**reading, "UUID": "GPU-1"}}
    )


def _run(capsys: pytest.CaptureFixture[str], *arguments: str, uuids: str = "GPU-0") -> tuple[int, list[str]]:
    code = nvidia_smi.main("gpus.yaml", "node", uuids, arguments)
    return code, capsys.readouterr().out.splitlines()


def test_usual_fields_of_the_exporters_gpus(gpu_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [f"--query-gpu={USUAL}", "--format=csv"]
    assert nvidia_smi.main(gpu_file, "node", "GPU-2,GPU-0", asked) == 0
    titles, first, second = capsys.readouterr().out.splitlines()
    assert titles == TITLES
    shape = r"0, NVIDIA L4, GPU-2, \d+ %, \d+ MiB, 23034 MiB, \d+\.\d\d W, \d+, \d+ MHz, \d[\d.]*"
    assert re.fullmatch(shape, first)
    assert second.startswith("1, NVIDIA A10G, GPU-0, ")


@pytest.mark.usefixtures("no_exporter")
@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ("csv", ["utilization.gpu [%], power.draw [W], name", "97 %, 299.10 W, NVIDIA A10G"]),
        ("csv,noheader", ["97 %, 299.10 W, NVIDIA A10G"]),
        ("csv,nounits", ["utilization.gpu [%], power.draw [W], name", "97, 299.10, NVIDIA A10G"]),
        ("noheader,nounits,csv", ["97, 299.10, NVIDIA A10G"]),
    ],
)
def test_header_and_units_can_be_left_out(
    options: str, lines: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = "--query-gpu=utilization.gpu,power.draw,gpu_name"
    assert _run(capsys, asked, f"--format={options}") == (0, lines)


@pytest.mark.usefixtures("no_exporter")
def test_what_a_gpu_does_not_say_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--query-gpu=memory.total,clocks.sm,index,count", "--format=csv,noheader")
    assert _run(capsys, *asked, uuids="GPU-0,GPU-1") == (
        0,
        ["23028 MiB, [N/A], 0, 2", "23028 MiB, [N/A], 1, 2"],
    )


@pytest.mark.usefixtures("no_exporter")
def test_time_is_written_as_the_real_one_does(capsys: pytest.CaptureFixture[str]) -> None:
    _, (line,) = _run(capsys, "--query-gpu=timestamp", "--format=csv,noheader")
    assert re.fullmatch(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{3}", line)


@pytest.mark.usefixtures("no_exporter")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--query-gpu=name,fan.sped", "--format=csv"], 'Field "fan.sped" is not a valid field to query.'),
        (["--query-gpu=", "--format=csv"], 'Field "" is not a valid field to query.'),
        (["--query-gpu=name"], "\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help."),
        (
            ["--query-gpu=name", "--format=xml"],
            "simulated nvidia-smi: --format=xml is not simulated; there are",
        ),
        (["--loop=1", "--query-gpu=name", "--format=csv"], "simulated nvidia-smi: --loop=1 is not simulated"),
        (["--format=csv"], "simulated nvidia-smi: --format=csv is not simulated"),
        (["--query-gpu", "name"], "simulated nvidia-smi: --query-gpu name is not simulated"),
        (
            ["-q"],
            "simulated nvidia-smi: -q is not simulated; there are no options, -L, and --query-gpu=FIELD",
        ),
    ],
)
def test_what_it_does_not_take_is_refused(
    arguments: Sequence[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (said, *rest) = _run(capsys, *arguments)
    assert code == 2
    assert said.startswith(words)
    assert not any(rest)


def test_container_finds_it_with_its_own_gpus() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("burn", pause(resources={"limits": {"nvidia.com/gpu": 2}}))
        await lab.ready("burn")
        query = ("nvidia-smi", "--query-gpu=index,name", "--format=csv,noheader")
        assert await lab.execute("burn", *query) == (0, b"0, NVIDIA A10G\n1, NVIDIA A10G\n", b"")
        assert (await lab.execute("burn", "nvidia-smi", "--query-gpu=no", "--format=csv"))[0] == 2

    in_lab(test, gpus=True)


def test_nvidia_smi_shows_the_containers_own_gpus() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.pod("burn", pause(**ONE), annotations={"gpuworkshop.io/load": "matmul"})
        await lab.ready("burn")
        node = SimulatedNode(lab.state / "lab" / "nodes" / f"{NODE_NAME}.yaml")
        uuid = next(gpu["uuid"] for gpu in node.read() if gpu["pods"])
        _, listed, _ = await lab.execute("burn", "nvidia-smi", "-L")
        assert listed.decode() == f"GPU 0: NVIDIA A10G (UUID: {uuid})\n"
        code, table, _ = await lab.execute("burn", "sh", "-c", "nvidia-smi")
        assert code == 0
        assert table.count(b"NVIDIA A10G") == 1
        assert b"simulated" in table
        assert re.search(rb" (9\d|100)% ", table)
        assert len({len(line) for line in table.splitlines()}) == 1

    in_lab(test, gpus=True)

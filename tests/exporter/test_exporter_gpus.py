"""The GPU file: what it may say, and what a mistake is answered with."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gpuworkshop.errors import GpuFileError
from gpuworkshop.exporter.devices import Pod
from gpuworkshop.exporter.gpus import GpuFile, parse
from gpuworkshop.exporter.loads import Load

WHOLE = """
- index: 0
  uuid: GPU-one
  model: a10g
  pods:
  - {namespace: ml, pod: trainer, container: main, load: {kind: wave, on: 15, off: 5}}
  - {pod: other, load: fp32}
- index: 3
  model: NVIDIA H100 80GB HBM3
  mig:
  - {profile: 1g.10gb, id: 9}
  - {profile: 3g.40gb, id: 2, pods: [{pod: slim}]}
- index: 1
  load: shared
"""

MISTAKES = {
    "": ("it holds nothing", "- index: 0"),
    "index: 0": ("a mapping, not a list", "dash"),
    "[]": ("not a list of GPUs", "dash"),
    "- 7": ("line 1: a number where a mapping belongs", "key: value"),
    "- {index: 0}\n- model: H200": ("line 2: index is missing", "index: 0"),
    "- index: -1": ("index is -1", "whole number"),
    "- index: yes": ("index is True", "whole number"),
    "- index: 1.0": ("index is 1.0", "whole number"),
    "- {index: 0}\n- {index: 0}": ("line 1: index 0 is given to two GPUs", "its own"),
    "- {index: 0, uuid: a}\n\n- {index: 1, uuid: a}": ("uuid a is given to two", "its own uuid"),
    "- {index: 0, uuid: 12}": ("uuid is 12", "quotes"),
    "- {index: 0, model: H20}": ("model 'H20' is unknown", "did you mean H200?"),
    "- {index: 0, model: B200}": ("model 'B200' is unknown", "A10G"),
    "- {index: 0, lod: idle}": ("unknown key 'lod'", "did you mean load?"),
    "- {index: 0, 5: idle}": ("unknown key '5'", "write one of index"),
    "- {index: 0, load: trainin}": ("load: 'trainin' is no load", "did you mean training?"),
    "- {index: 0, load: 3}": ("load: a number where", "key: value"),
    "- {index: 0, load: {on: 3}}": ("kind is missing", "kind:"),
    "- {index: 0, load: {kind: wave, on: 0}}": ("on is 0", "0.5 to 86400"),
    "- {index: 0, load: {kind: wave, on: .nan}}": ("on is nan", "0.5 to 86400"),
    "- {index: 0, load: {kind: wave, off: long}}": ("off is 'long'", "off: 20"),
    "- {index: 0, load: {kind: wave, on: true}}": ("on is True", "on: 20"),
    "- {index: 0, load: {kind: fp32, on: 3}}": ("belong to a wave, not to fp32", "kind: wave"),
    "- {index: 0, pods: {pod: a}}": ("pods is a mapping, not a list", "dash"),
    "- {index: 0, pods: [a]}": ("pods[0]: a text where", "key: value"),
    "- {index: 0, pods: [{namespace: a}]}": ("pods[0]: pod is missing", "pod:"),
    "- {index: 0, pods: [{pod: a, load: shared}]}": ("'shared' is no load here", "idle"),
    "- {index: 0, pods: [{pod: a}, {pod: a}]}": ("pod default/a with container main is there twice", "once"),
    "- {index: 0, load: fp32, pods: [{pod: a}]}": ("both a load and pods", "to a pod"),
    "- {index: 0, model: T4, mig: [{profile: 1g.2gb, id: 1}]}": ("a T4 has no MIG", "A100"),
    "- {index: 0, mig: [{profile: one, id: 1}]}": ("mig[0]: 'one' is no MIG profile", "1g.18gb"),
    "- {index: 0, mig: [{profile: 1g.18gb}]}": ("id is missing", "id: 0"),
    "- {index: 0, mig: [{profile: 1g.18gb, id: 1}, {profile: 1g.18gb, id: 1}]}": ("same id", "its own id"),
    "- {index: 0, mig: [{profile: 7g.141gb, id: 1}, {profile: 1g.18gb, id: 2}]}": ("over 7 slices", "fewer"),
    "- {index: 0, mig: [{profile: 3g.71gb, id: 1}, {profile: 4g.141gb, id: 2}]}": ("more memory", "fewer"),
    "- {index: 0, mig: [{profile: 1g.18gb, id: 1}], load: fp32}": ("or a load of its own", "under `mig`"),
    "- index: 0\n  load: {kind: wave": ("line 2: not YAML", "mend"),
    "- {index: 2024-13-45}": ("not YAML: month must be in 1..12", "mend"),
    "- !!python/object/apply:os.getpid []": ("line 1: not YAML", "mend"),
    "- &a [*a]": ("line 1: a list where", "key: value"),
    "[" * 5000: ("not YAML", "mend"),
}


def test_everything_that_a_file_may_say() -> None:
    first, second, third = parse(WHOLE, "node-1")
    assert (first.index, first.uuid, first.model.key) == (0, "GPU-one", "A10G")
    assert [(spec.pod, spec.load) for spec in first.pods] == [
        (Pod("ml", "trainer", "main"), Load("wave", 15, 5)),
        (Pod("default", "other", "main"), Load("fp32")),
    ]
    assert second.model.key == "H100"
    assert [(i.profile, i.id, i.slices, i.memory_share) for i in second.instances] == [
        ("1g.10gb", 9, 1, 1 / 8),
        ("3g.40gb", 2, 3, 4 / 8),
    ]
    assert (third.model.key, third.load) == ("H200", Load("shared"))


def test_a_file_written_by_a_program_reads_like_one_written_by_hand() -> None:
    # By hand, `on` is a truth value to YAML; a program writes it in quotes.
    by_hand = "- {index: 0, load: {kind: wave, on: 15, off: 5}}"
    by_program = yaml.safe_dump([{"index": 0, "load": {"kind": "wave", "on": 15, "off": 5}}])
    assert "'on'" in by_program
    assert parse(by_hand, "n") == parse(by_program, "n")


def test_a_derived_uuid_depends_on_node_and_index_only() -> None:
    def uuid(index: int, node: str, **more: str) -> str:
        return parse(yaml.safe_dump([{"index": index, **more}]), node)[0].uuid

    assert uuid(0, "a") == uuid(0, "a", model="T4", load="fp32")
    assert len({uuid(0, "a"), uuid(1, "a"), uuid(0, "b"), uuid(1, "b")}) == 4
    assert uuid(0, "a").startswith("GPU-")
    assert len(uuid(0, "a")) == len("GPU-") + 36


@pytest.mark.parametrize("text", MISTAKES, ids=lambda text: text[:60])
def test_a_mistake_says_where_it_is_and_what_to_write(text: str) -> None:
    seen, todo = MISTAKES[text]
    with pytest.raises(GpuFileError) as caught:
        parse(text, "node-1")
    assert seen in caught.value.seen
    assert todo in caught.value.todo
    assert caught.value.step


def test_a_file_that_is_none(tmp_path: Path) -> None:
    undecodable = tmp_path / "latin.yaml"
    undecodable.write_bytes(b"- index: 0 # \xff")
    for path, seen in (
        (tmp_path / "no such", "No such file"),
        (undecodable, "byte 13 is 0xff"),
        (tmp_path, "Is a directory"),
    ):
        with pytest.raises(GpuFileError, match=seen) as caught:
            GpuFile(path, "node-1").read()
        assert str(path) in caught.value.seen
        assert caught.value.todo


def test_a_change_is_seen_until_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "gpus.yaml"
    path.write_text("- index: 0")
    file = GpuFile(path, "node-1")
    assert file.changed()
    file.read()
    assert not file.changed()
    path.write_text("- {index: 0, load: fp32}")
    assert file.changed()
    file.read()
    path.unlink()
    assert file.changed()

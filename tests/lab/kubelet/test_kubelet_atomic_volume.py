"""Volumes whose files are all replaced in one step."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from kubelet_lab import KubeletLab, in_lab, shell

from gpuworkshop.lab.api.kinds import CONFIG_MAP
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.kubelet import atomic_volume
from gpuworkshop.lab.kubelet.volumes import File


def _files(**texts: str) -> dict[str, File]:
    return {name: File(text.encode()) for name, text in texts.items()}


def _seen(volume: Path) -> dict[str, str]:
    """What a reader finds, by name."""
    return {
        each.name: each.read_text()
        for each in volume.iterdir()
        if not each.name.startswith("..") and each.is_file()
    }


def test_files_lead_through_one_link(tmp_path: Path) -> None:
    atomic_volume.write(tmp_path, _files(a="1", b="2"))
    assert _seen(tmp_path) == {"a": "1", "b": "2"}
    assert (tmp_path / "a").readlink() == Path("..data/a")
    assert (tmp_path / "..data").is_symlink()
    assert atomic_volume.is_one(tmp_path)


def test_new_state_replaces_all_files_and_leaves_one_folder(tmp_path: Path) -> None:
    atomic_volume.write(tmp_path, _files(a="1", b="2"))
    before = (tmp_path / "..data").readlink()
    atomic_volume.write(tmp_path, _files(b="3", c="4"))
    assert _seen(tmp_path) == {"b": "3", "c": "4"}
    assert (tmp_path / "..data").readlink() != before
    assert [each.name for each in tmp_path.iterdir() if each.is_dir() and not each.is_symlink()] == [
        str((tmp_path / "..data").readlink())
    ]


def test_same_state_is_not_written_again(tmp_path: Path) -> None:
    atomic_volume.write(tmp_path, _files(a="1"))
    before = (tmp_path / "..data").readlink()
    atomic_volume.write(tmp_path, _files(a="1"))
    assert (tmp_path / "..data").readlink() == before


def test_paths_of_items_and_modes(tmp_path: Path) -> None:
    atomic_volume.write(tmp_path, {"deep/er/a": File(b"1", 0o750), "deep/b": File(b"2", 0o040)})
    assert (tmp_path / "deep" / "er" / "a").read_bytes() == b"1"
    assert (tmp_path / "deep").readlink() == Path("..data/deep")
    assert (tmp_path / "deep" / "er" / "a").stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "deep" / "b").stat().st_mode & 0o777 == 0o440, "its owner can compare it"


def test_full_disk_leaves_the_old_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    atomic_volume.write(tmp_path, _files(a="1"))

    def full(path: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space"):
            atomic_volume.write(tmp_path, _files(a="2"))
    assert _seen(tmp_path) == {"a": "1"}
    assert len([each for each in tmp_path.iterdir() if each.is_dir() and not each.is_symlink()]) == 1
    atomic_volume.write(tmp_path, _files(a="2"))
    assert _seen(tmp_path) == {"a": "2"}


def test_write_that_was_cut_short_is_made_good(tmp_path: Path) -> None:
    atomic_volume.write(tmp_path, _files(a="1"))
    (tmp_path / "..2026_01_01_00_00_00.000000001").mkdir()  # as kill -9 leaves it
    (tmp_path / "..data_tmp").symlink_to("..2026_01_01_00_00_00.000000001")
    atomic_volume.write(tmp_path, _files(a="2"))
    assert _seen(tmp_path) == {"a": "2"}
    assert len([each for each in tmp_path.iterdir() if each.is_dir() and not each.is_symlink()]) == 1


def test_reader_never_sees_half_of_a_change() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.put(CONFIG_MAP, "pair", data={"one": "0", "two": "0"})
        mounts = [{"name": "v", "mountPath": "/pair"}]
        # Both are read through one state of the folder, as a careful program does.
        script = (
            "while :; do cd -P /pair/..data 2>/dev/null || continue; "
            "read a < one && read b < two || continue; "
            'test "$a" = "$b" || echo torn; test "$a" = 50 && break; done; echo over'
        )
        lab.pod(
            "app",
            shell(script, volumeMounts=mounts),
            volumes=[{"name": "v", "configMap": {"name": "pair"}}],
            restartPolicy="Never",
        )
        await lab.until(lambda: "Started" in lab.events("app"))
        for number in range(1, 51):

            def change(live: Object, text: str = f"{number}\n") -> None:
                live["data"] = {"one": text, "two": text}

            lab.registry.modify(CONFIG_MAP, "default", "pair", change)
        await lab.phase("app", "Succeeded")
        assert await lab.log("app") == b"over\n"

    in_lab(test)


def test_sub_path_stays_as_it_was() -> None:
    async def test(lab: KubeletLab) -> None:
        lab.put(CONFIG_MAP, "conf", data={"a": "1\n"})
        mounts = [
            {"name": "v", "mountPath": "/etc/app"},
            {"name": "v", "mountPath": "/etc/frozen", "subPath": "a"},
        ]
        script = "until grep -q 2 /etc/app/a; do sleep 0.02; done; cat /etc/frozen"
        lab.pod(
            "app",
            shell(script, volumeMounts=mounts),
            volumes=[{"name": "v", "configMap": {"name": "conf"}}],
            restartPolicy="Never",
        )
        await lab.until(lambda: "Started" in lab.events("app"))

        def change(live: Object) -> None:
            live["data"] = {"a": "2\n"}

        lab.registry.modify(CONFIG_MAP, "default", "conf", change)
        await lab.phase("app", "Succeeded")
        assert await lab.log("app") == b"1\n"

    in_lab(test)

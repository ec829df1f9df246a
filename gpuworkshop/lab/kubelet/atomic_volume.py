"""The files of a ConfigMap, a Secret or the like, all replaced in one step: whoever reads sees old or new.

As on a real node, each file of the volume leads through the link `..data` to a folder of one state:

    volume/app.conf -> ..data/app.conf
    volume/..data   -> ..2026_12_01_07_30_00.123456789
"""

from __future__ import annotations

import secrets
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from gpuworkshop.lab.kubelet.paths import inside
from gpuworkshop.lab.kubelet.volumes import File

DATA, NEW = "..data", "..data_tmp"
OURS = 0o400  # a real kubelet is root, and can compare what it cannot read


def is_one(volume: Path) -> bool:
    """Whether the volume is written here; an emptyDir is not."""
    return (volume / DATA).is_symlink()


def write(volume: Path, files: Mapping[str, File]) -> None:
    """Bring the volume, a folder that exists, to these files by their path in it. Raises OSError.

    After an error, such as a full disk, it has all that it had before.
    """
    state = {inside(Path(), path): File(each.data, each.mode | OURS) for path, each in files.items()}
    if is_one(volume) and _held(volume / DATA) == state:
        return
    folder = volume / f"..{time.strftime('%Y_%m_%d_%H_%M_%S', time.gmtime())}.{secrets.randbelow(10**9):09d}"
    try:
        _write(folder, state)
        (volume / NEW).unlink(missing_ok=True)
        (volume / NEW).symlink_to(folder.name)
        (volume / NEW).replace(volume / DATA)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    names = {path.parts[0] for path in state}
    for name in names:
        _show(volume / name)
    for found in volume.iterdir():
        if found.name.startswith("..") and found.name not in (DATA, folder.name):
            shutil.rmtree(found, ignore_errors=True)
        elif found.is_symlink() and not found.name.startswith("..") and found.name not in names:
            found.unlink()


def _show(place: Path) -> None:
    target = Path(DATA, place.name)
    if place.is_symlink() and place.readlink() == target:
        return
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def _write(folder: Path, state: Mapping[Path, File]) -> None:
    folder.mkdir(mode=0o755)
    for path, file in state.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch(mode=0o600)
        place.write_bytes(file.data)
        place.chmod(file.mode)


def _held(data: Path) -> dict[Path, File]:
    return {
        path.relative_to(data): File(path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in data.rglob("*")
        if path.is_file()
    }

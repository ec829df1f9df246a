"""Takes commands out of archives: zip and tar, also one inside the other."""

from __future__ import annotations

import shutil
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO

from gpuworkshop.errors import DownloadError


def extract(archive: Path, member: str, to: Path) -> None:
    """Write one file of the archive to `to`, executable.

    `member` is a path or pattern; `a.zip!b/c` is the file b/c of the archive a.zip in it. Raises
    DownloadError when the archive is damaged or has no such file.
    """
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        with archive.open("rb") as file:
            _extract(file, member, to)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise DownloadError(f"{archive.name} is a damaged archive ({error})") from error
    to.chmod(0o755)


def extract_tree(archive: Path, folder: str, to: Path) -> None:
    """Write all that lies under `folder` in a zip to `to`, with its permissions and symbolic links."""
    with zipfile.ZipFile(archive) as bundle:
        for info in bundle.infolist():
            if info.filename.startswith(folder) and not info.is_dir():
                _place(bundle, info, to / info.filename.removeprefix(folder))


def _place(bundle: zipfile.ZipFile, info: zipfile.ZipInfo, to: Path) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    mode = info.external_attr >> 16
    if stat.S_ISLNK(mode):
        to.symlink_to(bundle.read(info).decode())
        return
    with bundle.open(info) as source, to.open("wb") as target:
        shutil.copyfileobj(source, target)
    to.chmod(0o755 if mode & 0o100 else 0o644)


def _extract(archive: IO[bytes], member: str, to: Path) -> None:
    outer, _, inner = member.partition("!")
    with (
        _open(archive, outer) as source,
        tempfile.TemporaryFile(dir=to.parent) if inner else to.open("wb") as target,
    ):
        shutil.copyfileobj(source, target, 1 << 20)
        if inner:
            target.seek(0)
            _extract(target, inner, to)


@contextmanager
def _open(archive: IO[bytes], pattern: str) -> Iterator[IO[bytes]]:
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as bundle, bundle.open(_match(bundle.namelist(), pattern)) as file:
            yield file
        return
    archive.seek(0)
    with tarfile.open(fileobj=archive) as tar:
        member = tar.extractfile(_match(tar.getnames(), pattern))
        if member is None:
            raise DownloadError(f"{pattern} is no file in its archive")
        with member:
            yield member


def _match(names: list[str], pattern: str) -> str:
    for name in names:
        if fnmatchcase(name, pattern):
            return name
    raise DownloadError(f"its archive has no {pattern}")

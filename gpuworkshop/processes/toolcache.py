"""Fetched tools on disk: `TOOLS/NAME/`, complete and verified or not used at all.

A tool is put together in a staging folder, with a manifest of SHA-256 sums that is written through to the
disk, and renamed into place. What an interrupted fetch leaves in staging is thrown away by the next one;
what a power cut leaves half written does not match its sums. One lock a tool keeps two callers apart.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path

from gpuworkshop.errors import ToolError
from gpuworkshop.processes import locks

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """What lies in a tool's folder: command → path, and path → SHA-256, paths relative to the folder."""

    source: str
    commands: Mapping[str, str]
    files: Mapping[str, str] = field(default_factory=dict)


def locked(tools: Path, name: str) -> AbstractContextManager[None]:
    """Hold the tool's lock."""
    return locks.locked(tools / f".{name}.lock")


@contextmanager
def staging(tools: Path, name: str) -> Iterator[Path]:
    """An empty folder to put the tool together in; only under the tool's lock."""
    folder = tools / f".{name}.staging"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def load(tools: Path, name: str) -> Manifest | None:
    """The tool's manifest, or None when it was never fetched. Raises ToolError when it is damaged."""
    folder = tools / name
    if not folder.exists():
        return None
    try:
        manifest = Manifest(**json.loads((folder / MANIFEST).read_text(encoding="utf-8")))
        wanted = dict.fromkeys(manifest.commands.values(), "")
        for path, digest in (wanted | dict(manifest.files)).items():
            if sha256(folder / path) != digest:
                raise ToolError(f"its file {path} has changed since it was fetched")
    except FileNotFoundError as error:
        raise ToolError(f"its file {Path(error.filename).name} is gone") from error
    except OSError as error:
        raise ToolError(f"its file {Path(error.filename).name} cannot be read ({error.strerror})") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise ToolError("its manifest cannot be read") from error
    return manifest


def install(staged: Path, tools: Path, name: str, manifest: Manifest) -> None:
    """Move what lies in `staged` to `TOOLS/NAME`, in one step.

    A process that runs the tool's former binary goes on undisturbed.
    """
    paths = sorted(path for path in staged.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    sums = {path.relative_to(staged).as_posix(): sha256(path) for path in paths}
    text = json.dumps({**asdict(manifest), "files": sums}, indent=1)
    with (staged / MANIFEST).open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    former = tools / f".{name}.former"
    shutil.rmtree(former, ignore_errors=True)
    if (tools / name).exists():
        (tools / name).rename(former)
    staged.rename(tools / name)
    shutil.rmtree(former, ignore_errors=True)


def sha256(path: Path) -> str:
    """The file's SHA-256 in hex; remembered for as long as the file stays the same."""
    about = path.stat()
    return _sha256(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=20_000)
def _sha256(path: Path, _mtime_ns: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

"""A short folder for what must have a short path: unix sockets (107 bytes), and the way to the pods' folders.

It lies in the machine's folder for temporary files, can be entered by its owner only, and is noted in the
lab's state folder, so that the next start finds it again. The way to the pods' folders has no spaces either,
since it stands in shell commands.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

NOTE = "short-folder"


def short_folder(lab: Path) -> Path:
    """The short folder of the lab whose state folder is `lab`."""
    note = lab / NOTE
    with suppress(OSError, UnicodeDecodeError):
        noted = Path(note.read_text(encoding="utf-8").strip())
        if _is_ours(noted) and (noted / "pods").readlink() == lab / "pods":
            return noted
    lab.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="gpuworkshop-"))  # mode 0700
    (lab / "pods").mkdir(mode=0o700, exist_ok=True)
    (folder / "pods").symlink_to(lab / "pods")
    note.write_text(f"{folder}\n", encoding="utf-8")
    return folder


def remove(folder: Path) -> None:
    """Remove the short folder; what its way leads to stays."""
    shutil.rmtree(folder, ignore_errors=True)


def socket_of(folder: Path, node: str) -> Path:
    """The node's pod-resources socket: a short name that is always the same for the node's."""
    return folder / f"{hashlib.sha256(node.encode()).hexdigest()[:12]}.sock"


def _is_ours(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077

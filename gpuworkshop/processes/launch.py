"""Starts a group's supervisor, detached, and waits for its word."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from gpuworkshop.errors import DiskFull, ServiceDied, ServiceError
from gpuworkshop.processes import handshake, reaper
from gpuworkshop.processes.children import last_lines, open_log
from gpuworkshop.processes.failures import from_wire, quoted
from gpuworkshop.settings import Settings


def launch(group: str, command: Sequence[str], settings: Settings, deadline: float) -> None:
    """Run `command`, the supervisor of `group`, and return when it says that all is healthy.

    Returns too when it says that another supervisor was first, and at `deadline` (monotonic) without a word.
    Raises the error that it sends, ServiceDied when it ends without a word, and DiskFull or ServiceError
    when it cannot be started.
    """
    log = settings.logs / f"{group}-supervisor.log"
    ours, theirs = os.pipe()
    try:
        try:
            _spawn(command, settings, log, theirs)
        except OSError as error:
            raise _cannot_start(group, error) from error
        finally:
            os.close(theirs)
        message = handshake.listen(ours, deadline)
    except TimeoutError:
        return
    finally:
        os.close(ours)
    if message is None:
        raise ServiceDied(
            f"the supervisor of {group} ended by itself. {quoted(log, last_lines(log))}",
            step=f"starting {group}",
            todo="mend what these lines name, and start again",
        )
    if "error" in message:
        raise from_wire(message["error"])


def _spawn(command: Sequence[str], settings: Settings, log: Path, ready: int) -> None:
    settings.run.mkdir(parents=True, exist_ok=True)
    _note_state_folder(settings)
    settings.logs.mkdir(parents=True, exist_ok=True)
    inherited = {key: value for key, value in os.environ.items() if key != reaper.GROUP}
    ours = {
        reaper.MARK: str(settings.state),
        handshake.READY_FD: str(ready),
        "GPUWORKSHOP_STATE": str(settings.state),
        "GPUWORKSHOP_HOME": str(settings.root),
    }
    with open_log(log) as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=inherited | ours,
            cwd=settings.root,
            pass_fds=[ready],
            start_new_session=True,
        )
    # It outlives this call; should it end before this process does, it must not stay a zombie.
    threading.Thread(target=process.wait, daemon=True).start()


def _note_state_folder(settings: Settings) -> None:
    """Tell the scripts, which cannot read every form of `.env`, where the state folder is."""
    note = settings.root / ".workshop" / "state-folder"
    with suppress(OSError):  # a checkout that cannot be written to
        note.parent.mkdir(exist_ok=True)
        note.write_text(f"{settings.state}\n", encoding="utf-8")


def _cannot_start(group: str, error: OSError) -> ServiceError:
    full = error.errno == errno.ENOSPC
    return (DiskFull if full else ServiceError)(
        f"its supervisor cannot be started: {error}",
        step=f"starting {group}",
        todo="make room on the disk and start again" if full else "mend that and start again",
    )

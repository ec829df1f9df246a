"""Real command-line clients of a cluster, run for a step: what they say is what a learner would see.

No shell is involved, and every command can be typed: `text` gives it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gpuworkshop.errors import DeployError

LIMIT_S = 60.0
MOST_WORDS = 2000
UNREACHABLE = ("connection refused", "was refused", "unable to connect", "unreachable", "i/o timeout")
START = "is the cluster up? ./status.sh tells, ./run.sh starts it; then run the same cell again"
MEND = "mend what it names, then run the same cell again"


@dataclass(frozen=True)
class Client:
    """A client at `binary`, on the cluster that `kubeconfig` names."""

    binary: Path
    kubeconfig: Path
    name: ClassVar[str]
    error: ClassVar[type[DeployError]] = DeployError

    def run(self, *arguments: str, stdin: str = "", timeout_s: float = LIMIT_S) -> str:
        """What it prints. Raises the client's `error`, in its own words, when it fails or takes too long."""
        done = self._run(arguments, stdin, timeout_s)
        if done.returncode:
            words = done.stderr.strip()[-MOST_WORDS:]
            away = any(sign in words.lower() for sign in UNREACHABLE)
            raise self.error(
                words or f"it ended with {done.returncode}",
                step=self.text(*arguments),
                todo=START if away else MEND,
                response=done,
            )
        return done.stdout

    def say(self, *arguments: str, stdin: str = "") -> str:
        """All that it prints, be it an answer or an error: for a learner to read."""
        done = self._run(arguments, stdin, LIMIT_S)
        return done.stdout + done.stderr

    def text(self, *arguments: str) -> str:
        """The command as one would type it."""
        return shlex.join([self.name, *arguments])

    def environment(self) -> Mapping[str, str]:
        """The variables that it needs on top of ours."""
        return {"KUBECONFIG": str(self.kubeconfig)}

    def _run(
        self, arguments: tuple[str, ...], stdin: str, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run(
                [str(self.binary), *arguments],
                input=stdin,
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                timeout=timeout_s,
                env={**os.environ, **self.environment()},
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise self.error(
                f"it gave no answer within {timeout_s:g} s",
                step=self.text(*arguments),
                todo="see ./status.sh whether the cluster is up",
            ) from error
        except OSError as error:
            raise self.error(
                f"{self.binary} cannot be run: {error.strerror}",
                step=self.text(*arguments),
                todo=f"gpuworkshop tools {self.name} finds or fetches it",
            ) from error

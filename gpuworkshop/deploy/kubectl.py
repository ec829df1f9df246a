"""The real kubectl, run for a step: its words are what a learner would see, and its commands can be typed."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpuworkshop.errors import KubectlError

LIMIT_S = 60.0
Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Kubectl:
    """kubectl at `binary`, on the cluster that `kubeconfig` names."""

    binary: Path
    kubeconfig: Path

    def run(self, *arguments: str, stdin: str = "", timeout_s: float = LIMIT_S) -> str:
        """What it prints. Raises KubectlError with its own words when it fails, or takes too long."""
        done = self._run(arguments, stdin, timeout_s)
        if done.returncode:
            raise KubectlError(
                done.stderr.strip()[-2000:] or f"it ended with {done.returncode}",
                step=f"kubectl {' '.join(arguments)}",
                todo="is the cluster up? ./status.sh tells, ./run.sh starts it; then run the same cell again",
            )
        return done.stdout

    def say(self, *arguments: str, stdin: str = "") -> str:
        """All that it prints, be it an answer or an error: for a learner to read."""
        done = self._run(arguments, stdin, LIMIT_S)
        return done.stdout + done.stderr

    def get(self, what: str, *arguments: str) -> list[dict[str, Any]]:
        """The objects that `kubectl get WHAT ARGUMENTS` finds; none when there are none of that name."""
        answer = json.loads(self.run("get", what, *arguments, "-o", "json", "--ignore-not-found") or "{}")
        return list(answer["items"]) if "items" in answer else [answer] if answer else []

    def apply(self, manifests: Iterable[Manifest]) -> str:
        """Apply the objects on the server's side, as the only owner of their fields."""
        text = yaml.safe_dump_all(manifests, sort_keys=False)
        return self.run("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)

    def delete(self, what: str, *arguments: str) -> str:
        """Delete what is there."""
        return self.run("delete", what, *arguments, "--ignore-not-found")

    def delete_manifests(self, manifests: Iterable[Manifest]) -> str:
        """Delete the objects that are there."""
        text = yaml.safe_dump_all(manifests, sort_keys=False)
        return self.run("delete", "--ignore-not-found", "-f", "-", stdin=text)

    def wait(self, what: str, *arguments: str, condition: str, timeout_s: int) -> str:
        """Wait until all of them have the condition. Raises KubectlError after `timeout_s` seconds."""
        limit = f"--timeout={timeout_s}s"
        return self.run(
            "wait", what, *arguments, f"--for=condition={condition}", limit, timeout_s=timeout_s + LIMIT_S
        )

    def _run(
        self, arguments: tuple[str, ...], stdin: str, timeout_s: float
    ) -> subprocess.CompletedProcess[str]:
        command = [str(self.binary), *arguments]
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig)}
        try:
            return subprocess.run(
                command,
                input=stdin,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                env=environment,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise KubectlError(
                f"it gave no answer within {timeout_s:g} s",
                step=f"kubectl {' '.join(arguments)}",
                todo="see ./status.sh whether the cluster is up",
            ) from error

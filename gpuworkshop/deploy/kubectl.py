"""The real kubectl, run for a step."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import yaml

from gpuworkshop.deploy.clients import LIMIT_S, Client
from gpuworkshop.errors import KubectlError

Manifest = Mapping[str, Any]


class Kubectl(Client):
    """kubectl at `binary`, on the cluster that `kubeconfig` names."""

    name = "kubectl"
    error = KubectlError

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

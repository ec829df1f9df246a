"""The real helm, run for a step. Its repositories are kept apart from those that the learner has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from gpuworkshop.deploy.clients import LIMIT_S, Client
from gpuworkshop.errors import HelmError

READY_S = 300


@dataclass(frozen=True)
class Helm(Client):
    """helm at `binary`, with its repositories and caches in `home`."""

    home: Path
    name = "helm"
    error = HelmError

    def environment(self) -> Mapping[str, str]:
        """Where the cluster is, and helm's own folders."""
        folders = {f"HELM_{kind.upper()}_HOME": str(self.home / kind) for kind in ("config", "cache", "data")}
        return {**super().environment(), **folders}

    def add_repository(self, name: str, url: str) -> str:
        """Know the chart repository at `url` as `name`, with the charts that it has now."""
        return self.run("repo", "add", name, url, "--force-update")

    def upgrade(
        self,
        release: str,
        chart: str,
        namespace: str,
        *,
        values: Mapping[str, Any] | None = None,
        files: Sequence[Path] = (),
        version: str = "",
        timeout_s: int = READY_S,
    ) -> str:
        """Install the release, or upgrade it, and wait until all of it is ready.

        `values` lie over those of `files`, and each file over the ones before it. It can be repeated: there
        is one release of the name, however often this is called. Raises DeployError
        in helm's words, or after `timeout_s` seconds.
        """
        pinned = ["--version", version] if version else []
        command = ["upgrade", "--install", release, chart, "--namespace", namespace, "--create-namespace"]
        command += [*pinned, *(f"--values={file}" for file in files), "--values", "-"]
        command += ["--wait", "--timeout", f"{timeout_s}s"]
        text = yaml.safe_dump(dict(values or {}), sort_keys=False)
        return self.run(*command, stdin=text, timeout_s=timeout_s + LIMIT_S)

    def releases(self, namespace: str) -> list[dict[str, Any]]:
        """The releases in a namespace, as `helm list` tells them."""
        found: list[dict[str, Any]] = json.loads(self.run("list", "--namespace", namespace, "-o", "json"))
        return found

    def uninstall(self, release: str, namespace: str) -> str:
        """Remove the release, if it is there, and wait until its objects are gone."""
        command = ["uninstall", release, "--namespace", namespace, "--ignore-not-found", "--wait"]
        return self.run(*command, "--timeout", f"{READY_S}s", timeout_s=READY_S + LIMIT_S)

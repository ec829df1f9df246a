"""Prometheus in a pod: the real server, told where the cluster's API is.

In a container it would find the API and its token at fixed places of the file system, which are not there on
this machine. So the configuration is rewritten: mount paths to where the mounts are, and each discovery
without an API server gets the lab's, with the pod's own token, so that RBAC is as for real.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml

from gpuworkshop.lab.kubelet.images import Launch, Situation
from gpuworkshop.lab.kubelet.paths import inside
from gpuworkshop.processes.state import replace_file
from gpuworkshop.processes.tools import find_or_fetch

ACCOUNT = "var/run/secrets/kubernetes.io/serviceaccount"
IMAGE_DEFAULTS = ("--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus")
_UNKNOWN_HERE = ("--web.console.templates", "--web.console.libraries")


async def launch(at: Situation) -> Launch:
    """Its command line. Raises ToolError when there is no Prometheus to be had."""
    binary = await asyncio.to_thread(find_or_fetch, "prometheus", at.settings, progress=False)
    flags = [
        flag for flag in _joined(at.args or IMAGE_DEFAULTS) if flag.partition("=")[0] not in _UNKNOWN_HERE
    ]
    named = dict(flag.split("=", 1) for flag in flags if "=" in flag)
    config = _below(at, named.get("--config.file", "prometheus.yml"))
    data = _below(at, named.get("--storage.tsdb.path", "data"))
    port = named.get("--web.listen-address", ":9090").rpartition(":")[2]
    own = ("--config.file", "--storage.tsdb.path", "--web.listen-address")
    rest = [flag for flag in flags if flag.partition("=")[0] not in own]
    here = _here(config, at)
    return Launch(
        [
            str(binary),
            f"--config.file={here}",
            f"--storage.tsdb.path={data}",
            f"--web.listen-address={at.address}:{port}",
            *rest,
        ],
        reloads=True,
    )


def _joined(args: Sequence[str]) -> Iterator[str]:
    """Each flag as `--name=value`, also where name and value are two words."""
    words = iter(args)
    held = ""
    for word in words:
        if word.startswith("--"):
            if held:
                yield held
            held = word
        else:
            yield f"{held}={word}" if held else word
            held = ""
    if held:
        yield held


def _below(at: Situation, path: str) -> Path:
    """A path of the container on this machine."""
    return Path(path) if Path(path).is_relative_to(at.root) else inside(at.root, path)


def _here(config: Path, at: Situation) -> Path:
    """The configuration as it is right on this machine; one that is broken is left to Prometheus."""
    try:
        found = yaml.safe_load(at.rewritten(config.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return config
    if not isinstance(found, dict):
        return config
    for discovery in _discoveries(found):
        if "api_server" not in discovery and "kubeconfig_file" not in discovery:
            discovery["api_server"] = at.api
            discovery["authorization"] = {"credentials_file": str(at.root / ACCOUNT / "token")}
            discovery["tls_config"] = {"ca_file": str(at.root / ACCOUNT / "ca.crt")}
    for key in ("rule_files", "scrape_config_files"):
        if isinstance(found.get(key), list):
            found[key] = [str(config.parent / str(path)) for path in found[key]]
    here = at.root / ".prometheus.yml"
    replace_file(here, yaml.safe_dump(found, sort_keys=False))
    return here


def _discoveries(found: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for job in found.get("scrape_configs") or []:
        for discovery in (job.get("kubernetes_sd_configs") if isinstance(job, dict) else None) or []:
            if isinstance(discovery, dict):
                yield discovery

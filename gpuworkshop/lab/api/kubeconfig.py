"""A kubeconfig: where the cluster is, whom to trust, and the token to come with; readable by its owner."""

from __future__ import annotations

import base64
from pathlib import Path

import yaml

from gpuworkshop.processes.state import replace_file


def write(
    path: Path,
    server: str,
    ca_pem: str,
    token: str,
    cluster: str,
    context: str = "",
    namespace: str = "default",
) -> None:
    """Replace the kubeconfig at `path`, with one context (named as the cluster, unless told otherwise)."""
    context = context or cluster
    authority = base64.b64encode(ca_pem.encode()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": cluster, "cluster": {"server": server, "certificate-authority-data": authority}}
        ],
        "users": [{"name": context, "user": {"token": token}}],
        "contexts": [
            {"name": context, "context": {"cluster": cluster, "user": context, "namespace": namespace}}
        ],
        "current-context": context,
    }
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(path, yaml.safe_dump(config, sort_keys=False))

"""Where the lab's cluster keeps its state, where it is served, and the admin's way in.

The supervisor prepares it before it starts the cluster's process, so that Prometheus finds a kubeconfig.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpuworkshop.lab.api import authentication, certificates, kubeconfig
from gpuworkshop.processes.ports import steady_port
from gpuworkshop.settings import Settings

CLUSTER = "gpuworkshop-lab"


@dataclass(frozen=True)
class Folder:
    """The folder of the cluster's state."""

    path: Path

    @property
    def database(self) -> Path:
        """The objects."""
        return self.path / "cluster.db"

    @property
    def secrets(self) -> Path:
        """Keys, certificates and tokens, each 0600."""
        return self.path / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The admin's kubeconfig, 0600."""
        return self.path / "kubeconfig"

    @property
    def nodes(self) -> Path:
        """A file a GPU node: what runs on its GPUs."""
        return self.path / "nodes"


@dataclass(frozen=True)
class Access:
    """The ports on 127.0.0.1 where the API and the charts are served."""

    api_port: int
    charts_port: int

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://127.0.0.1:{self.api_port}"

    @property
    def charts_url(self) -> str:
        """The address of the chart repositories, and of the cluster's health."""
        return f"http://127.0.0.1:{self.charts_port}"


def folder(settings: Settings) -> Folder:
    """The folder of the cluster of this checkout."""
    return Folder(settings.state / "lab")


def prepare(folder: Folder) -> Access:
    """Choose the ports, make keys and certificates where they are missing, and write the kubeconfig."""
    folder.path.mkdir(parents=True, exist_ok=True, mode=0o700)
    access = Access(steady_port(folder.path / "api-port"), steady_port(folder.path / "charts-port"))
    pki = certificates.ensure(folder.secrets)
    token = authentication.admin_token(folder.secrets)
    kubeconfig.write(folder.kubeconfig, access.server, pki.ca_pem, token, CLUSTER)
    return access

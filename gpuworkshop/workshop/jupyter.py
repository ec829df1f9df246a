"""JupyterLab as a supervised service, and where it answers.

All of its configuration lies in the workshop's state folder, so a password or extension of the learner's
own JupyterLab neither helps nor hinders. The token is made by the supervisor, handed over in the
environment, and read back from the file that JupyterLab itself keeps for its owner alone.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from pathlib import Path
from urllib.parse import urlsplit

from gpuworkshop.processes.ports import steady_port
from gpuworkshop.processes.supervisor import Service
from gpuworkshop.settings import Settings
from gpuworkshop.workshop.lessons import LESSONS

GROUP = "jupyterlab"


def build(settings: Settings) -> list[Service]:
    """The JupyterLab service, on the port of the settings or any free one."""
    host = settings.jupyter_host
    home = settings.state / "jupyter"
    port = settings.jupyter_port or steady_port(home / "port", host)
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)  # some of the files that hold the token are readable for all
    _quiet_front_end(home / "lab" / "user-settings")
    settings.notebooks.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", f"--ServerApp.ip={host}"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    command += [f"--ServerApp.root_dir={settings.notebooks}"]
    command += ["--allow-root"] if _is_root() else []
    url = f"http://{_reached_at(host)}:{port}"
    return [
        Service("jupyterlab", command, url=url, health_url=f"{url}/api", env=_environment(settings, home))
    ]


def address(settings: Settings, url: str) -> str:
    """The address to open, with its token: `url` is the service's. Empty if the server left no record."""
    port = urlsplit(url).port
    for record in _runtime(settings).glob("jpserver-*.json"):
        try:
            server = json.loads(record.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # half-written, or gone since it was listed
            continue
        if server.get("port") == port:
            return f"{url}/lab/tree/{LESSONS[0].file}?token={server['token']}"
    return ""


def _reached_at(host: str) -> str:
    """The host of an address to open, for the host to listen at."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"[{host}]" if ":" in host else host


def _environment(settings: Settings, home: Path) -> dict[str, str]:
    return {
        "JUPYTER_TOKEN": secrets.token_hex(24),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTER_RUNTIME_DIR": str(_runtime(settings)),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "lab" / "user-settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "lab" / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
        "GPUWORKSHOP_HOME": str(settings.root),
        "GPUWORKSHOP_STATE": str(settings.state),
    }


def _runtime(settings: Settings) -> Path:
    return settings.state / "jupyter" / "runtime"


def _quiet_front_end(folder: Path) -> None:
    """No news pop-up and no look-up of updates, unless the learner chose otherwise."""
    chosen = folder / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    if not chosen.exists():
        chosen.parent.mkdir(parents=True, exist_ok=True)
        chosen.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}), encoding="utf-8")


def _is_root() -> bool:
    return os.geteuid() == 0

"""Where things are and what the learner chose: from `.env`, overruled by the environment.

One frozen object is made at the start and handed down; nothing else reads the environment.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dotenv import dotenv_values

from gpuworkshop.errors import SettingsError

TARGETS = ("lab", "eks", "kubeconfig")


@dataclass(frozen=True)
class Settings:
    """The workshop's settings. All paths are absolute.

    `root` is the checkout; `state` the one folder that the workshop writes to (`.workshop/` in it,
    unless `GPUWORKSHOP_STATE` says otherwise).
    """

    root: Path
    state: Path
    target: str = "lab"
    jupyter_host: str = "127.0.0.1"
    jupyter_port: int | None = None

    @property
    def logs(self) -> Path:
        """One log file a service."""
        return self.state / "logs"

    @property
    def run(self) -> Path:
        """What is running now: locks and the supervisors' state files."""
        return self.state / "run"

    @property
    def tools(self) -> Path:
        """Fetched command-line tools."""
        return self.state / "tools"

    @property
    def notebooks(self) -> Path:
        """The learner's working copies of the notebooks."""
        return self.state / "notebooks"


def load(root: Path | None = None) -> Settings:
    """Settings of the checkout at `root` (default: the one this package was installed from).

    Raises SettingsError for a value that makes no sense.
    """
    root = (root or _checkout()).resolve()
    values = {**_dotenv(root / ".env"), **os.environ}
    state = Path(values.get("GPUWORKSHOP_STATE") or root / ".workshop")
    target = values.get("TARGET") or "lab"
    if target not in TARGETS:
        raise SettingsError(
            f"TARGET is {target!r}, which is none of {', '.join(TARGETS)}",
            step="reading the settings",
            todo=f"mend TARGET in {root / '.env'} or in your environment",
        )
    return Settings(
        root=root,
        state=(root / state).resolve(),
        target=target,
        jupyter_host=values.get("JUPYTER_HOST") or "127.0.0.1",
        jupyter_port=_port(values.get("JUPYTER_PORT")),
    )


def _dotenv(path: Path) -> dict[str, str | None]:
    try:
        return dotenv_values(path)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{path} cannot be read: {error}", step="reading the settings", todo="save it as UTF-8 text"
        ) from error


def _checkout() -> Path:
    if home := os.environ.get("GPUWORKSHOP_HOME"):
        return Path(home)
    parent = Path(__file__).resolve().parent.parent
    return parent if (parent / "pyproject.toml").exists() else Path.cwd()


def _port(text: str | None) -> int | None:
    if not text:
        return None
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise SettingsError(
            f"JUPYTER_PORT is {text!r}, which is no port number",
            step="reading the settings",
            todo="give a number from 1 to 65535, or leave it empty for any free port",
        )
    return int(text)

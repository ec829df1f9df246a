"""Does this binary run, which version is it, and can it do what the workshop needs?

Every binary is asked before it is used, wherever it comes from. The answer is remembered for as long as
the file stays the same.
"""

from __future__ import annotations

import re
import tempfile
from functools import lru_cache
from pathlib import Path

from gpuworkshop.errors import ToolError
from gpuworkshop.processes import capture

LIMIT_S = 15.0

# command → its arguments, and where its answer has the version
_QUESTIONS = {
    "kubectl": (("version", "--client", "-o", "json"), r'"gitVersion"\s*:\s*"v?(\d+\.\d+\.\d+)'),
    "helm": (("version", "--short"), r"(?m)^v?(\d+\.\d+\.\d+)"),
    "aws": (("--version",), r"aws-cli/(\d+\.\d+\.\d+)"),
    "prometheus": (("--version",), r"prometheus, version (\d+\.\d+\.\d+)"),
    "promtool": (("--version",), r"promtool, version (\d+\.\d+\.\d+)"),
}

_DISCOVERY = """\
scrape_configs:
  - job_name: discovery
    kubernetes_sd_configs:
      - {role: pod, api_server: "http://127.0.0.1:1"}
"""


def version(command: str, binary: Path) -> str:
    """The version that `binary` says it is, as `1.35.2`.

    Raises ToolError when it does not run, hangs, says nothing of a version, or is a promtool without
    Kubernetes discovery (Debian 12's).
    """
    about = binary.stat()
    return _version(command, binary, about.st_mtime_ns, about.st_size)


@lru_cache
def _version(command: str, binary: Path, _mtime_ns: int, _size: int) -> str:
    arguments, pattern = _QUESTIONS[command]
    answer = capture.run([binary, *arguments], LIMIT_S)
    found = re.search(pattern, answer)
    if not found:
        raise ToolError(f"it does not say its version, but {answer.strip()[:80]!r}")
    if command == "promtool":
        _require_discovery(binary)
    return found[1]


def _require_discovery(promtool: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder, "prometheus.yml")
        config.write_text(_DISCOVERY, encoding="utf-8")
        try:
            capture.run([promtool, "check", "config", config], LIMIT_S)
        except ToolError as error:
            raise ToolError(f"it has no Kubernetes discovery ({error.seen})") from error

"""Commands written in Python: installed by pip into a folder of their own, apart from the workshop's.

They are started by this very Python through a small launcher, which finds its folder from where it lies,
so that the folder can be moved. (A virtual environment could not be, and its `#!` line breaks at a space in
the path.)
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from gpuworkshop.processes.sources import pip
from gpuworkshop.versions import PythonPackage

_MAIN = """\
import sys
from {module} import {function}
sys.exit({function}())
"""

_LAUNCHER = """\
#!/bin/sh
exec {python} "${{0%/*}}/../{command}-main" "$@"
"""


def fetch(source: PythonPackage, into: Path) -> dict[str, str]:
    """Install the package and its dependencies, and write a launcher for each command."""
    (into / "bin").mkdir()
    for command, entry in source.entry.items():
        home = into / f"{command}-main"
        pip.run("install", "--no-user", "--target", home, f"{source.package}=={source.version}")
        module, function = entry.split(":")
        (home / "__main__.py").write_text(_MAIN.format(module=module, function=function), encoding="utf-8")
        launcher = into / "bin" / command
        text = _LAUNCHER.format(python=shlex.quote(sys.executable), command=command)
        launcher.write_text(text, encoding="utf-8")
        launcher.chmod(0o755)
    return {command: f"bin/{command}" for command in source.entry}

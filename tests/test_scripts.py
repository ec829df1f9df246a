"""The scripts of the top level, run as a learner runs them, in a copy whose path has spaces.

No environment is built here: `fake_python` is a shell script that takes a real Python's place on the PATH and
makes an environment whose Python records what it is asked to do.
"""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuworkshop.processes import groups, reaper
from gpuworkshop.settings import Settings

ROOT = Path(__file__).parent.parent
PYTHON = shlex.quote(sys.executable)
SCRIPTS = ("build.sh", "run.sh", "exec.sh", "status.sh", "stop.sh", "test.sh")
COMMANDS = "awk bash cat chmod cksum cp df dirname env flock id mkdir rm sed sh sleep touch tr"
FITS = 'case "$2" in *version_info*) echo "will do";; esac\n'

# The environment's Python: `-V` and imports work, the rest is written down; pip does what PIP says.
VENV_PYTHON = """#!/bin/sh
[ "$1" = -V ] && { echo Python 3.12.0; exit; }
[ "$1" = -c ] && exit 0
echo "$@" >> "$CALLS"
case "$*" in "-m pip install"*) eval "$PIP";; esac
"""

# A Python that makes such an environment.
MAKES_VENV = f"""
[ "$2" = venv ] && {{ mkdir -p "$3/bin" && cat > "$3/bin/python" <<'END' && chmod +x "$3/bin/python"
{VENV_PYTHON}
END
}}
"""


class Checkout:
    """A copy of the scripts, with a PATH of its own: `bin` and the system's basic commands."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root / "bin"
        self.bin.mkdir(parents=True)
        self.calls = root / "calls"
        self.started: list[subprocess.Popen[str]] = []
        self.env: dict[str, str] = {"HOME": str(root), "CALLS": str(self.calls), "PIP": ""}
        for name in (*SCRIPTS, ".env", "pyproject.toml"):
            shutil.copy(ROOT / name, root / name)
        kept = root / "gpuworkshop" / "processes" / "reaper.py"
        kept.parent.mkdir(parents=True)
        shutil.copy(reaper.__file__, kept)
        for command in COMMANDS.split():
            found = shutil.which(command)
            assert found, command
            (self.bin / command).symlink_to(found)
        self.state = root / ".workshop"

    def program(self, name: str, body: str) -> Path:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
        return path

    def start(self, script: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [str(self.root / script), *arguments],
            env={"PATH": str(self.bin), **self.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()

    def run(self, script: str, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
        process = self.start(script, *arguments)
        out, err = process.communicate(given, timeout=60)
        return subprocess.CompletedProcess(script, process.returncode, out, err)

    def called(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Checkout]:
    made = Checkout(tmp_path / "a check out")
    yield made
    made.end()


@pytest.fixture
def built(checkout: Checkout) -> Checkout:
    """A checkout whose environment has been made."""
    checkout.program("python3", FITS + MAKES_VENV)
    assert checkout.run("build.sh").returncode == 0
    checkout.calls.unlink()
    return checkout


@pytest.fixture
def marked(checkout: Checkout) -> Iterator[subprocess.Popen[bytes]]:
    """A process that the workshop in the checkout started."""
    env = {**os.environ, reaper.MARK: str(checkout.state)}
    process = subprocess.Popen(["sleep", "600"], env=env)
    yield process
    process.kill()
    process.wait()


def until_exists(path: Path) -> None:
    deadline = time.monotonic() + 20
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come to be"
        time.sleep(0.01)


def pip_calls(checkout: Checkout) -> list[str]:
    return [call.rpartition(" ")[2] for call in checkout.called() if "-m pip install" in call]


# build.sh


def test_builds_once(checkout: Checkout) -> None:
    checkout.program("python3", FITS + MAKES_VENV)
    first = checkout.run("build.sh")
    assert (first.returncode, pip_calls(checkout)) == (0, [".[lab]"])
    assert "+ python3 -m venv .workshop/venv" in first.stderr
    again = checkout.run("build.sh")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")
    assert pip_calls(checkout) == [".[lab]"]


def test_extras_add_up_and_include_one_another(built: Checkout) -> None:
    for extra in ("dev", "lab", "test", "benchmark", "dev"):
        assert built.run("build.sh", extra).returncode == 0
    assert pip_calls(built) == [".[lab,test,dev]", ".[lab,test,dev,benchmark]"]


def test_builds_again_when_the_project_file_changes(built: Checkout) -> None:
    with (built.root / "pyproject.toml").open("a") as file:
        file.write("# changed\n")
    assert built.run("build.sh").returncode == 0
    assert pip_calls(built) == [".[lab]"]


def test_a_moved_checkout_gets_a_new_environment(built: Checkout, tmp_path: Path) -> None:
    marker = built.state / "venv" / "of-the-old-place"
    marker.touch()
    moved = built.root.rename(tmp_path / "moved")
    built.env["CALLS"] = str(moved / "calls")
    built.root, built.bin = moved, moved / "bin"
    assert built.run("build.sh").returncode == 0
    assert not (moved / ".workshop" / "venv" / marker.name).exists()


def test_takes_the_python_of_the_settings(checkout: Checkout) -> None:
    mine = checkout.program("my python", FITS + MAKES_VENV)
    env = checkout.root / ".env"
    env.write_text(env.read_text().replace("PYTHON=", f'PYTHON="{mine}"'))
    checkout.program("python3", "exit 1")
    assert checkout.run("build.sh").returncode == 0
    assert pip_calls(checkout) == [".[lab]"]


def test_passes_over_pythons_that_do_not_fit(checkout: Checkout) -> None:
    checkout.program("python3.13", "echo has no venv module >&2; exit 1")
    checkout.program("python3.12", FITS + MAKES_VENV)
    assert "+ python3.12 -m venv" in checkout.run("build.sh").stderr


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("echo is Python 3.9 >&2; exit 1", "python3 is Python 3.9"),
        ("echo has no venv module >&2; exit 1", "python3 has no venv module"),
        ("echo Python 2.7.18", "python3 Python 2.7.18"),
        (None, "none of python3.13 python3.12 python3.11 python3"),
    ],
)
def test_no_python_that_fits(checkout: Checkout, body: str | None, seen: str) -> None:
    if body:
        checkout.program("python3", body)
    done = checkout.run("build.sh")
    assert done.returncode == 1
    assert f"needs Python 3.11 or newer with its venv module; seen: {seen}" in done.stderr
    assert "apt-get install python3 python3-venv" in done.stderr
    assert not (checkout.state / "venv").exists()


def test_the_probe_itself_tells_versions_apart(checkout: Checkout) -> None:
    real = f'exec {PYTHON} -I "$@"'
    old = 'sed "s/sys.version_info/(3, 9, 1)/g"'
    checkout.program("python3", f'code=$(printf %s "$2" | {old}); exec {PYTHON} -I -c "$code"')
    assert "seen: python3 is Python 3.9" in checkout.run("build.sh").stderr
    checkout.program("python3", f'[ "$1" = -c ] || exit 3; {real}')
    assert "cannot make a virtual environment" in checkout.run("build.sh").stderr


def test_a_python_that_fails_to_make_an_environment(checkout: Checkout) -> None:
    checkout.program("python3", FITS + '[ "$2" = venv ] && echo ensurepip is not available && exit 1')
    done = checkout.run("build.sh")
    assert done.returncode == 1
    assert "apt-get install python3-venv" in done.stderr


def test_no_space(checkout: Checkout) -> None:
    checkout.program("python3", FITS + MAKES_VENV)
    checkout.program("df", "echo header; echo disk 9 9 123456 99% /")
    done = checkout.run("build.sh")
    assert done.returncode == 1
    assert "no space: 123 MB are free" in done.stderr
    assert checkout.called() == []


def test_pip_fails_and_the_next_build_goes_on(checkout: Checkout) -> None:
    checkout.program("python3", FITS + MAKES_VENV)
    checkout.env["PIP"] = "echo no route to the index >&2; exit 1"
    done = checkout.run("build.sh")
    assert done.returncode == 1
    assert "no route to the index\nbuild.sh: pip could not install" in done.stderr
    checkout.env["PIP"] = ""
    assert checkout.run("build.sh").returncode == 0
    assert len(pip_calls(checkout)) == 2


@pytest.mark.parametrize("during", ["venv", "pip"])
def test_ctrl_c_leaves_what_the_next_build_repairs(checkout: Checkout, during: str) -> None:
    hang = f'touch "{checkout.root}/hangs"; exec sleep 600'
    broken = f'[ "$2" = venv ] && {{ mkdir -p "$3/bin/half"; {hang}; }}'
    checkout.program("python3", FITS + (broken if during == "venv" else MAKES_VENV))
    checkout.env["PIP"] = hang
    building = checkout.start("build.sh")
    until_exists(checkout.root / "hangs")
    os.killpg(building.pid, signal.SIGINT)
    _, err = building.communicate(timeout=20)
    assert building.returncode == 130
    assert "interrupted; run it again to go on" in err
    checkout.program("python3", FITS + MAKES_VENV)
    checkout.env["PIP"] = ""
    assert checkout.run("build.sh").returncode == 0
    assert not (checkout.state / "venv" / "bin" / "half").exists()
    assert checkout.run("build.sh").stderr == ""


def test_two_at_once_build_once(checkout: Checkout) -> None:
    checkout.program("python3", FITS + MAKES_VENV)
    go = checkout.root / "go"
    checkout.env["PIP"] = f'touch "{checkout.root}/started"; while [ ! -e "{go}" ]; do sleep 0.01; done'
    first = checkout.start("build.sh")
    until_exists(checkout.root / "started")
    second = checkout.start("build.sh")
    assert second.stderr
    assert "waiting for another build" in second.stderr.readline()
    go.touch()
    first.communicate(timeout=20)
    second.communicate(timeout=20)
    assert (first.returncode, second.returncode) == (0, 0)
    assert pip_calls(checkout) == [".[lab]"]


def test_what_a_build_leaves_running_does_not_hold_its_lock(checkout: Checkout) -> None:
    checkout.program("python3", FITS + MAKES_VENV)
    checkout.env["PIP"] = f'sleep 600 >/dev/null 2>&1 </dev/null & echo $! >"{checkout.root}/pid"'
    assert checkout.run("build.sh").returncode == 0
    checkout.env["PIP"] = ""
    try:
        assert checkout.run("build.sh", "test").returncode == 0  # waits for the lock if it is held
    finally:
        os.kill(int((checkout.root / "pid").read_text()), signal.SIGKILL)


@pytest.mark.parametrize("script", ["build.sh", "run.sh"])
def test_the_container_is_not_there_yet(checkout: Checkout, script: str) -> None:
    done = checkout.run(script, "--container")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "the container comes with a later version" in done.stderr


@pytest.mark.parametrize("script", ["build.sh", "run.sh", "stop.sh"])
def test_wrong_usage(checkout: Checkout, script: str) -> None:
    done = checkout.run(script, "--nonsense")
    assert done.returncode == 2
    assert f"usage: ./{script}" in done.stderr


# run.sh, exec.sh, status.sh


@pytest.mark.parametrize(
    ("arguments", "call"),
    [
        ((), "-m gpuworkshop up"),
        (("--local",), "-m gpuworkshop up"),
        (
            ("rehearse", "--target", "lab", "00-first-wave"),
            "-m gpuworkshop rehearse --target lab 00-first-wave",
        ),
        (("--local", "rehearse"), "-m gpuworkshop rehearse"),
    ],
)
def test_run(built: Checkout, arguments: tuple[str, ...], call: str) -> None:
    done = built.run("run.sh", *arguments)
    assert (done.returncode, built.called()) == (0, [call])
    assert f"+ exec .workshop/venv/bin/python {call}" in done.stderr


def test_run_stops_when_the_build_fails(checkout: Checkout) -> None:
    done = checkout.run("run.sh")
    assert done.returncode == 1
    assert checkout.called() == []


def test_exec_passes_exit_code_input_and_output(built: Checkout) -> None:
    done = built.run("exec.sh", "sh", "-c", "cat; echo on stderr >&2; exit 7", given="two  words\n")
    assert (done.returncode, done.stdout) == (7, "two  words\n")
    assert "on stderr" in done.stderr
    assert built.run("exec.sh", "no-such-command").returncode == 127


def test_exec_has_the_tools_and_the_kubeconfig(built: Checkout) -> None:
    tool = built.state / "tools" / "helm" / "bin" / "helm"
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\necho the fetched helm\n")
    tool.chmod(0o755)
    assert built.run("exec.sh", "helm").stdout == "the fetched helm\n"
    # Also before there is one: kubectl must not find the learner's own.
    kubeconfig = built.state / "lab" / "kubeconfig"
    assert built.run("exec.sh", "sh", "-c", "echo $KUBECONFIG").stdout == f"{kubeconfig}\n"


def test_exec_without_a_command_is_a_shell(built: Checkout) -> None:
    built.env["SHELL"] = "/bin/sh"
    assert built.run("exec.sh", given="echo from $((1 + 1)) lines\n").stdout == "from 2 lines\n"


def test_exec_keeps_a_terminal(built: Checkout) -> None:
    ours, theirs = pty.openpty()
    try:
        command = [str(built.root / "exec.sh"), "sh", "-c", "test -t 0 && test -t 1"]
        env = {"PATH": str(built.bin), **built.env}
        assert subprocess.run(command, env=env, stdin=theirs, stdout=theirs, timeout=60).returncode == 0
    finally:
        os.close(theirs)
        os.close(ours)


def test_status_before_anything_is_built(checkout: Checkout) -> None:
    done = checkout.run("status.sh", "--json")
    assert done.returncode == 0
    expected = groups.status(Settings(checkout.root, checkout.state))
    assert json.loads(done.stdout)["services"] == [
        {"name": s.name, "state": s.state, "url": s.url, "pid": s.pid} for s in expected
    ]
    assert "jupyterlab               stopped" in checkout.run("status.sh").stdout


def test_status_of_what_is_built(built: Checkout) -> None:
    assert built.run("status.sh", "--json").returncode == 0
    assert built.called() == ["-m gpuworkshop status --json"]


# stop.sh


@pytest.mark.parametrize("venv", ["none", "broken"])
def test_stop_needs_no_environment(checkout: Checkout, marked: subprocess.Popen[bytes], venv: str) -> None:
    if venv == "broken":
        (checkout.state / "venv" / "bin").mkdir(parents=True)
        (checkout.state / "venv" / "bin" / "python").symlink_to("nowhere")
    checkout.program("python3", f'exec {PYTHON} "$@"')
    done = checkout.run("stop.sh")
    assert (done.returncode, done.stdout) == (0, "ended 1 process\n")
    assert "+ python3 -I gpuworkshop/processes/reaper.py .workshop" in done.stderr
    assert marked.wait(10) == -signal.SIGTERM
    assert checkout.run("stop.sh").stdout == "nothing was running\n"


def test_stop_from_a_terminal_of_the_workshop(checkout: Checkout, marked: subprocess.Popen[bytes]) -> None:
    checkout.program("python3", f'exec {PYTHON} "$@"')
    checkout.env[reaper.MARK] = str(checkout.state)
    (checkout.state / "run").mkdir(parents=True)
    done = checkout.run("stop.sh", "--purge")
    assert done.returncode == 0
    assert marked.wait(10) == -signal.SIGTERM
    assert not checkout.state.exists()


def test_stop_keeps_and_purge_removes_the_state(checkout: Checkout) -> None:
    checkout.program("python3", f'exec {PYTHON} "$@"')
    (checkout.state / "notebooks").mkdir(parents=True)
    assert checkout.run("stop.sh").returncode == 0
    assert (checkout.state / "notebooks").exists()
    assert checkout.run("stop.sh", "--purge").returncode == 0
    assert not checkout.state.exists()


def test_stop_with_a_state_folder_of_the_learners_choice(checkout: Checkout, tmp_path: Path) -> None:
    checkout.program("python3", f'exec {PYTHON} "$@"')
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    checkout.env["GPUWORKSHOP_STATE"] = str(elsewhere)
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, reaper.MARK: str(elsewhere)})
    done = checkout.run("stop.sh", "--purge")
    assert process.wait(10) == -signal.SIGTERM
    assert f"remove it yourself: {elsewhere}" in done.stdout
    assert elsewhere.exists()


def test_stop_finds_the_state_folder_where_it_was_written_down(checkout: Checkout, tmp_path: Path) -> None:
    checkout.program("python3", f'exec {PYTHON} "$@"')
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    checkout.state.mkdir(exist_ok=True)
    (checkout.state / "state-folder").write_text(f"{elsewhere}\n")
    process = subprocess.Popen(["sleep", "600"], env={**os.environ, reaper.MARK: str(elsewhere)})
    assert checkout.run("stop.sh").stdout == "ended 1 process\n"
    assert process.wait(10) == -signal.SIGTERM


def test_purge_of_the_usual_folder_has_nothing_to_add(checkout: Checkout) -> None:
    checkout.program("python3", f'exec {PYTHON} "$@"')
    checkout.state.mkdir(exist_ok=True)
    (checkout.state / "state-folder").write_text(f"{checkout.state.resolve()}\n")
    done = checkout.run("stop.sh", "--purge")
    assert done.stdout == "nothing was running\n"
    assert not checkout.state.exists()


def test_stop_without_any_python(checkout: Checkout) -> None:
    done = checkout.run("stop.sh")
    assert done.returncode == 1
    assert "no Python 3.8 or newer was found" in done.stderr


# test.sh


def test_test_fails_in_ci_without_a_browser(built: Checkout) -> None:
    assert built.run("build.sh", "dev").returncode == 0
    built.program("id", "echo 1000")
    built.program("pytest", 'echo pytest "$@"')
    assert "pytest -m not full one" in (skipped := built.run("test.sh", "one")).stdout
    assert "the browser tests are skipped" in skipped.stderr
    built.env["CI"] = "true"
    assert built.run("test.sh", "one").returncode == 1
    built.program("chromium", "exit 0")
    assert built.run("test.sh", "--full", "one").stdout == "pytest -m  one\n"


def test_test_runs_the_linters_before_the_tests(built: Checkout) -> None:
    assert built.run("build.sh", "dev").returncode == 0
    (built.root / ".ci").mkdir()
    tools = ("chromium", "ruff", "mypy", "lint-imports", "pytest", "shellcheck")
    for name in tools:
        built.program(name, f"echo {name}")
    assert built.run("test.sh").stdout.split() == [
        "shellcheck",
        "ruff",
        "ruff",
        "mypy",
        "lint-imports",
        "pytest",
    ]
    built.program("mypy", "exit 1")
    assert built.run("test.sh").returncode == 1

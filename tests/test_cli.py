"""The command line: a verb a thing, sentences instead of tracebacks, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpuworkshop import cli


def gpuworkshop(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpuworkshop", *words]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=60)


def test_help_lists_every_verb_with_what_it_does() -> None:
    done = gpuworkshop("--help")
    assert done.returncode == 0
    assert all(verb in done.stdout and about in done.stdout for verb, (_, about) in cli.VERBS.items())


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_has_help(verb: str) -> None:
    done = gpuworkshop(verb, "--help")
    assert done.returncode == 0
    assert f"gpuworkshop {verb}" in done.stdout


def test_unknown_verb_is_wrong_usage() -> None:
    done = gpuworkshop("uo")
    assert done.returncode == 2
    assert "No such command 'uo'" in done.stderr


def test_an_error_is_sentences(tmp_path: Path) -> None:
    done = gpuworkshop("status", TARGET="moon", GPUWORKSHOP_STATE=str(tmp_path))
    assert done.returncode == 1
    assert "TARGET is 'moon'" in done.stderr
    assert "What to do: " in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"TARGET=\xff\xfe")
    done = gpuworkshop("status", GPUWORKSHOP_HOME=str(tmp_path))
    assert done.returncode == 1
    assert ".env cannot be read" in done.stderr


def test_a_file_in_the_place_of_the_state_folder_is_named(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text("a file")
    done = gpuworkshop("up", GPUWORKSHOP_STATE=str(state))
    assert done.returncode == 1
    assert str(state) in done.stderr
    assert "Traceback" not in done.stderr


def test_the_exporter_stays_light() -> None:
    code = (
        "import sys, gpuworkshop.exporter.command; "
        "print([m for m in ('numpy', 'pandas', 'matplotlib', 'httpx') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

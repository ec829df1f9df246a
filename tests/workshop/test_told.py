"""A step never shows a learner a traceback: errors and interruptions are verdicts."""

from __future__ import annotations

import pytest

from gpuworkshop.errors import LabError, LabNotRunning, PrometheusUnreachable
from gpuworkshop.workshop import Step, Verdict


class Trouble(Step):
    """A step that raises what it is told to."""

    name, title = "trouble", "Trouble"

    def __init__(self, *raises: BaseException) -> None:
        self._raises = list(raises)

    def _raise(self) -> None:
        if self._raises:
            raise self._raises.pop(0)

    def check(self) -> Verdict:
        return self.failed("not so")

    def bring_about(self) -> None:
        self._raise()

    def verify(self) -> Verdict:
        def proof() -> str:
            self._raise()
            return "so"

        return self.await_proof(proof, "nothing", 5)

    def reset(self) -> Verdict:
        return self.passed("undone")

    def give_history(self, seconds: float) -> None:
        self._raise()

    def text(self) -> str:
        return ""


@pytest.mark.parametrize("verb", ["apply", "verify", "have_history"])
def test_an_error_is_told(verb: str) -> None:
    step = Trouble(LabNotRunning("it is down", todo="start it"))
    verdict = step.have_history(1) if verb == "have_history" else getattr(step, verb)()
    assert not verdict.ok
    assert (verdict.seen, verdict.todo) == ("it is down", "start it")


@pytest.mark.parametrize("verb", ["apply", "verify"])
def test_an_interruption_is_told(verb: str) -> None:
    verdict = getattr(Trouble(KeyboardInterrupt()), verb)()
    assert not verdict.ok
    assert "interrupted" in verdict.seen
    assert "again" in verdict.todo


def test_a_prometheus_that_restarts_is_waited_for() -> None:
    assert Trouble(PrometheusUnreachable("gone")).verify().seen == "so"


def test_patience_ends() -> None:
    step = Trouble()
    verdict = step.await_proof(lambda: "", "nothing came", 0)
    assert not verdict.ok
    assert verdict.seen == "nothing came"


def test_what_is_no_workshop_error_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        Trouble(ZeroDivisionError()).apply()


def test_the_last_error_of_an_unreachable_prometheus_is_told() -> None:
    def proof() -> str:
        raise PrometheusUnreachable("gone", todo="look")

    verdict = Trouble().await_proof(proof, "nothing", 0)
    assert (verdict.ok, verdict.seen, verdict.todo) == (False, "gone", "look")


def test_a_lab_error_in_catching_up_is_told() -> None:
    assert Trouble(LabError("promtool ended with 1")).have_history(5).seen == "promtool ended with 1"

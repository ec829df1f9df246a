"""A step: four verbs that may each be used twice, in any order.

`check` looks at the real world, never at a flag; `apply` brings the step about; `verify` proves it by
data; `reset` undoes it. `show` prints the very commands and manifests.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from gpuworkshop.errors import PrometheusUnreachable, WorkshopError
from gpuworkshop.workshop.verdict import Verdict

POLL_S = 0.5  # Prometheus has no event for a scrape that was stored

P = ParamSpec("P")
S = TypeVar("S", bound="Step")


def told(method: Callable[Concatenate[S, P], Verdict]) -> Callable[Concatenate[S, P], Verdict]:
    """Make an error, or an interruption, of a step's method a verdict: the cells below can still be run."""

    @wraps(method)
    def telling(step: S, /, *args: P.args, **kwargs: P.kwargs) -> Verdict:
        try:
            return method(step, *args, **kwargs)
        except WorkshopError as error:
            return step.failed(error)
        except KeyboardInterrupt:
            return step.failed("interrupted half-way", "run the same cell again: it goes on from there")

    return telling


class Step(ABC):
    """One step of the workshop. `name` is what `ws.step(name)` takes; `title` is for people."""

    name: str
    title: str

    @abstractmethod
    def check(self) -> Verdict:
        """Is it so? Changes nothing."""

    @abstractmethod
    def bring_about(self) -> None:
        """Do what the step does. Only called when `check` says that it is not so."""

    @abstractmethod
    def verify(self) -> Verdict:
        """Prove it by data; may wait for the data to arrive, for seconds."""

    @abstractmethod
    def reset(self) -> Verdict:
        """Undo it."""

    @abstractmethod
    def text(self) -> str:
        """The commands and manifests of `apply`, as they can be typed."""

    @abstractmethod
    def give_history(self, seconds: float) -> None:
        """Have data of the last `seconds`, made up where the target can, and marked as such."""

    @told
    def apply(self) -> Verdict:
        """Bring it about, unless it is so already, and say how it is then."""
        if not self.check().ok:
            self.bring_about()
        return self.check()

    @told
    def have_history(self, seconds: float) -> Verdict:
        """Give it a history of the last `seconds`, and say how it is then."""
        self.give_history(seconds)
        return self.check()

    def show(self) -> None:
        """Print the commands and manifests behind `apply`."""
        print(self.text())

    @told
    def await_proof(self, proof: Callable[[], str], missing: str, patience_s: float) -> Verdict:
        """Ask `proof` until it has something to say, or patience ends: then `missing` is the verdict."""
        deadline = time.monotonic() + patience_s
        while True:
            try:
                if seen := proof():
                    return self.passed(seen)
                verdict = self.failed(missing, "see ./status.sh, and ws.step('lab').verify()")
            except PrometheusUnreachable as error:  # it may be restarting
                verdict = self.failed(error)
            if time.monotonic() > deadline:
                return verdict
            time.sleep(POLL_S)

    def passed(self, seen: str) -> Verdict:
        """A verdict of this step: it is so."""
        return Verdict(True, self.title, seen)

    def failed(self, why: WorkshopError | str, todo: str = "") -> Verdict:
        """A verdict of this step: it is not so."""
        if isinstance(why, WorkshopError):
            return Verdict(False, self.title, why.seen, why.todo)
        return Verdict(False, self.title, why, todo)

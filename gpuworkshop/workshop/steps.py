"""A step: four verbs that may each be used twice, in any order.

`check` looks at the real world, never at a flag; `apply` brings the step about; `verify` proves it by
data; `reset` undoes it. `show` prints the very commands and manifests.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from gpuworkshop.errors import WorkshopError
from gpuworkshop.workshop.verdict import Verdict


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

    def apply(self) -> Verdict:
        """Bring it about, unless it is so already, and say how it is then.

        What goes wrong is told in the verdict, so that the cells below can still be run.
        """
        try:
            if not self.check().ok:
                self.bring_about()
            return self.check()
        except WorkshopError as error:
            return self.failed(error)

    def show(self) -> None:
        """Print the commands and manifests behind `apply`."""
        print(self.text())

    def passed(self, seen: str) -> Verdict:
        """A verdict of this step: it is so."""
        return Verdict(True, self.title, seen)

    def failed(self, why: WorkshopError | str, todo: str = "") -> Verdict:
        """A verdict of this step: it is not so."""
        if isinstance(why, WorkshopError):
            return Verdict(False, self.title, why.seen, why.todo)
        return Verdict(False, self.title, why, todo)

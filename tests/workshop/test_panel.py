"""A step as a widget: buttons that answer, and a verdict that is shown."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from typing import Any

import ipywidgets as widgets
import pytest

from gpuworkshop.errors import LabNotRunning
from gpuworkshop.workshop import Step, Verdict
from gpuworkshop.workshop.panel import panel


class Door(Step):
    """A step about a door."""

    name, title = "door", "The door is open"

    def __init__(self) -> None:
        self.open = False
        self.may_end = Event()
        self.may_end.set()

    def check(self) -> Verdict:
        return self.passed("it stands open") if self.open else self.failed("it is shut", "push")

    def bring_about(self) -> None:
        self.may_end.wait(10)
        self.open = True

    def verify(self) -> Verdict:
        raise LabNotRunning("nobody is there", todo="knock")

    def reset(self) -> Verdict:
        self.open = False
        return self.passed("shut")

    def give_history(self, seconds: float) -> None:
        """Doors have none."""

    def text(self) -> str:
        return "push"


class Shown:
    """The panel as a person sees it."""

    def __init__(self, door: Door) -> None:
        buttons, self.verdict = panel(door).children
        self.buttons: dict[str, widgets.Button] = {b.description: b for b in buttons.children}
        self.rested = Event()
        self.buttons["Reset"].observe(self._rests, "disabled")

    def _rests(self, change: Any) -> None:
        if not change.new:
            self.rested.set()

    def press(self, label: str) -> str:
        self.rested.clear()
        self.buttons[label].click()
        assert self.rested.wait(10)
        return str(self.verdict.value)


@pytest.fixture
def door() -> Iterator[Door]:
    door = Door()
    yield door
    door.may_end.set()


def test_each_verb_shows_its_verdict(door: Door) -> None:
    shown = Shown(door)
    assert list(shown.buttons) == ["Check", "Apply", "Verify", "Reset"]
    assert "it is shut" in shown.press("Check")
    assert "it stands open" in shown.press("Apply")
    assert "shut" in shown.press("Reset")
    assert not door.open


def test_an_error_is_a_verdict(door: Door) -> None:
    said = Shown(door).press("Verify")
    assert "nobody is there" in said
    assert "knock" in said


def test_buttons_rest_while_a_verb_runs(door: Door) -> None:
    door.may_end.clear()
    shown = Shown(door)
    shown.buttons["Apply"].click()
    assert all(button.disabled for button in shown.buttons.values())
    door.may_end.set()
    assert shown.rested.wait(10)
    assert "it stands open" in shown.verdict.value

"""A question with choices: the learner guesses first, and only then reads why."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import ipywidgets as widgets
from IPython.display import display


class Quiz:
    """A question. Shown as buttons, with the explanation after the first guess; as text, it only asks."""

    def __init__(self, question: str, choices: Sequence[str], answer: str, because: str) -> None:
        if answer not in choices:
            raise ValueError(f"{answer!r} is none of the choices")
        self.question, self.choices, self.answer, self.because = question, choices, answer, because
        self._reply = widgets.HTML()

    def guess(self, choice: str) -> str:
        """Answer from a cell; returns the reply as text."""
        right = "Yes" if choice == self.answer else f"Not {choice}"
        return f"{right}: it is {self.answer}. {self.because}"

    def __str__(self) -> str:
        return "\n".join([self.question, *(f"  - {choice}" for choice in self.choices)])

    __repr__ = __str__

    def _ipython_display_(self) -> None:
        buttons = [widgets.Button(description=c, layout={"width": "auto"}) for c in self.choices]
        for button in buttons:
            button.on_click(lambda pressed: self._show(pressed.description))
        ask = widgets.HTML(f"<b>{escape(self.question)}</b>")
        display({"text/plain": str(self)}, raw=True)
        display(widgets.VBox([ask, widgets.HBox(buttons), self._reply]))

    def _show(self, choice: str) -> None:
        self._reply.value = escape(self.guess(choice))

"""Questions with choices: the learner guesses first, and only then reads why.

A notebook names a question, so that its answer does not stand in the cell above the buttons.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from html import escape

import ipywidgets as widgets
from IPython.display import display

from gpuworkshop.errors import UnknownStep
from gpuworkshop.workshop.verdict import Verdict


@dataclass(frozen=True)
class Quiz:
    """A question. Shown with a button for each choice; as text, it only asks."""

    question: str
    choices: tuple[str, ...]
    answer: str
    because: str

    def guess(self, choice: str) -> Verdict:
        """Whether `choice` is right, and why."""
        right = choice == self.answer
        seen = (
            f"it is {self.answer}. {self.because}"
            if right
            else f"not {choice}: it is {self.answer}. {self.because}"
        )
        return Verdict(right, self.question, seen)

    def __str__(self) -> str:
        return "\n".join([self.question, *(f"  - {choice}" for choice in self.choices)])

    def widget(self) -> widgets.Widget:
        """The question, its buttons, and the reply to the last guess."""
        reply = widgets.HTML()
        buttons = [widgets.Button(description=choice, layout={"width": "auto"}) for choice in self.choices]

        def pressed(button: widgets.Button) -> None:
            reply.value = self.guess(button.description)._repr_html_()

        for button in buttons:
            button.on_click(pressed)
        return widgets.VBox([widgets.HTML(f"<b>{escape(self.question)}</b>"), widgets.HBox(buttons), reply])

    def _ipython_display_(self) -> None:
        if os.environ.get("GPUWORKSHOP_HEADLESS") == "1":  # nobody is there to press a button
            print(self)
        else:
            display(self.widget())


QUIZZES = {
    "wasted-gpu": Quiz(
        "Which pod wastes its GPU?",
        ("language/tuner-0", "vision/detector-0", "robotics/simulator-0"),
        "robotics/simulator-0",
        "Its GPU only copies data over PCIe: it draws little more power than an idle GPU, and neither its "
        "tensor cores nor its memory have much to do. Power, tensor and DRAM activity show it.",
    ),
}


def find(name: str) -> Quiz:
    """The question of that name. Raises UnknownStep."""
    if name in QUIZZES:
        return QUIZZES[name]
    raise UnknownStep(
        f"there is no question {name!r}",
        step="looking for a question",
        todo=f"there are {', '.join(QUIZZES)}",
    )

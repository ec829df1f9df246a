"""A step as a widget: a button for each verb, and the verdict below.

Each verb runs in a thread of its own, so that the buttons answer while a cell runs.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread

import ipywidgets as widgets

from gpuworkshop.errors import WorkshopError
from gpuworkshop.workshop.steps import Step
from gpuworkshop.workshop.verdict import Verdict


def panel(step: Step) -> widgets.Widget:
    """The panel of `step`. All buttons rest while a verb runs."""
    verdict = widgets.HTML(f"<i>{step.title}</i>")
    verbs = {"Check": step.check, "Apply": step.apply, "Verify": step.verify, "Reset": step.reset}
    buttons = [widgets.Button(description=label, tooltip=f"{step.name}: {label}") for label in verbs]

    def run(verb: Callable[[], Verdict]) -> None:
        try:
            verdict.value = verb()._repr_html_()
        except WorkshopError as error:
            verdict.value = step.failed(error)._repr_html_()
        finally:
            for button in buttons:
                button.disabled = False

    def pressed(button: widgets.Button) -> None:
        for each in buttons:
            each.disabled = True
        verdict.value = f"<i>{step.title}: {button.description.lower()} …</i>"
        Thread(target=run, args=(verbs[button.description],), daemon=True).start()

    for button in buttons:
        button.on_click(pressed)
    return widgets.VBox([widgets.HBox(buttons), verdict])

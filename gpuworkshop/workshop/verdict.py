"""What a check or a step found: one object that reads well as text, in HTML, and as a truth value."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

# Okabe and Ito's bluish green and vermilion, which the colour-blind can tell apart; a mark says it too.
_GOOD, _BAD = "#009E73", "#D55E00"


@dataclass(frozen=True)
class Verdict:
    """Whether it is so (`ok`), what was seen, and what to do if it is not so."""

    ok: bool
    step: str
    seen: str
    todo: str = ""

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        text = f"{self._mark} {self.step}: {self.seen}"
        return f"{text}\n  What to do: {self.todo}" if self.todo and not self.ok else text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        colour = _GOOD if self.ok else _BAD
        todo = f"<br><b>What to do:</b> {escape(self.todo)}" if self.todo and not self.ok else ""
        return (
            f'<div role="status" style="border-left:4px solid {colour};padding:2px 10px">'
            f'<b style="color:{colour}">{self._mark}</b> <b>{escape(self.step)}</b>: '
            f"{escape(self.seen)}{todo}</div>"
        )

    @property
    def _mark(self) -> str:
        return "✔" if self.ok else "✘"

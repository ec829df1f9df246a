"""The legend below the picture, drawn by itself when its entries change.

Half of the time that a frame takes would go into the legend's texts, which hardly ever change.
"""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from gpuworkshop.live.png import Pixels, draw
from gpuworkshop.live.series import Key, Style, Styles, names, style

WIDTH, LEFT, RIGHT, DPI = 960, 96, 44, 100
"""The picture's width and margins in pixels, and its resolution."""
INK, FAINT = "#333333", "#767676"
INDENT, ROW, ENTRIES = 32, 24, 24

_Entry = tuple[str, Style | None]


class Legend:
    """The pixels of the legend, kept as long as the entries are the same."""

    def __init__(self) -> None:
        self._entries: list[_Entry] | None = None
        self._pixels: Pixels

    def draw(self, keys: Sequence[Key], styles: Styles) -> Pixels:
        """The legend of these series, in the order of their slots."""
        entries = _entries(keys, styles)
        if entries != self._entries:
            self._pixels = _draw(entries)
            self._entries = entries
        return self._pixels


def _entries(keys: Sequence[Key], styles: Styles) -> list[_Entry]:
    called = names(keys)
    ordered = sorted(keys, key=styles.slot)
    entries: list[_Entry] = [(called[key], style(styles.slot(key))) for key in ordered]
    if len(entries) > ENTRIES:
        entries[ENTRIES - 1 :] = [(f"and {len(entries) - ENTRIES + 1} more", None)]
    return entries


def _draw(entries: Sequence[_Entry]) -> Pixels:
    widest = 60 + 7.8 * max((len(name) for name, _ in entries), default=0)
    columns = max(1, min(len(entries), int((WIDTH - INDENT) / widest)))
    height = 8 + ROW * -(-len(entries) // columns)
    figure = Figure(figsize=(WIDTH / DPI, height / DPI), dpi=DPI, facecolor="white")
    canvas = FigureCanvasAgg(figure)
    figure.legend(
        [_sample(look) for _, look in entries],
        [name for name, _ in entries],
        loc="upper left",
        bbox_to_anchor=(INDENT / WIDTH, 1),
        ncols=columns,
        fontsize=11,
        labelcolor=INK,
        frameon=False,
        handlelength=2.2,
        columnspacing=1.6,
        labelspacing=0.45,
        borderpad=0,
        borderaxespad=0,
    )
    return draw(canvas)


def _sample(look: Style | None) -> Line2D:
    if look is None:
        return Line2D([], [], linestyle="")
    line = Line2D([], [], color=look.colour, linewidth=2.6)
    line.set_dashes(look.dashes)
    return line

"""A picture as a small PNG: a hundred colours instead of 16 million, a third of the bytes.

The palette is fixed, made of the colours that the picture is drawn with and their mixtures with white:
so no time goes into finding one, and a line's colour is exactly its colour.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from numpy.typing import NDArray
from PIL import Image

from gpuworkshop.live.series import COLOURS

Pixels = NDArray[np.uint8]

SHADES, GREYS = 10, 18
"""Few enough that none lies nearer to a drawn colour than itself, in the six bits that Pillow looks at."""


def draw(canvas: FigureCanvasAgg) -> Pixels:
    """Draw the figure of a canvas: its pixels, shape (height, width, 3)."""
    canvas.draw()  # type: ignore[no-untyped-call]  # matplotlib has no annotation here
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()  # type: ignore[no-untyped-call]


def to_png(picture: Pixels) -> bytes:
    """A picture as palette PNG."""
    out = BytesIO()
    image = Image.fromarray(picture).quantize(palette=_PALETTE, dither=Image.Dither.NONE)
    image.save(out, "PNG", compress_level=5)
    return out.getvalue()


def _palette() -> Image.Image:
    mixtures = np.linspace(1, 0, SHADES, endpoint=False)[:, None]
    shades = [1 - mixtures * (1 - np.array(to_rgb(colour))) for colour in COLOURS]
    greys = np.repeat(np.linspace(0, 1, GREYS)[:, None], 3, axis=1)
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.round(np.vstack([*shades, greys]) * 255).astype(np.uint8).tobytes())
    return palette


_PALETTE = _palette()

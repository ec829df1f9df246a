"""The ordered notebooks: their names, how long each takes, and which steps stand before it."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

from gpuworkshop.errors import UnknownStep


@dataclass(frozen=True)
class Lesson:
    """A notebook. `needs` are the steps that must be so where it starts; `minutes` is a reader's time.

    `history_s` is how many seconds of data it wants of the loads that run.
    """

    name: str
    file: str
    title: str
    minutes: int
    needs: tuple[str, ...]
    history_s: float


LESSONS = (
    Lesson("first-wave", "00-first-wave.ipynb", "The first wave", 5, ("lab", "three-pods"), 900),
    Lesson("cluster", "02-cluster.ipynb", "A cluster with GPUs", 10, ("lab", "cluster", "device-plugin"), 0),
    Lesson(
        "dcgm-exporter",
        "03-dcgm-exporter.ipynb",
        "NVIDIA's exporter",
        15,
        ("lab", "cluster", "device-plugin"),
        0,
    ),
    Lesson("gpu-load", "04-gpu-load.ipynb", "A load on a GPU", 10, ("lab", "cluster", "gpu-operator"), 0),
    Lesson(
        "prometheus-live",
        "08-prometheus-live.ipynb",
        "Live from Prometheus",
        10,
        ("lab", "three-pods", "gpu-burn"),
        3600,
    ),
    Lesson(
        "sharing-a-gpu",
        "10-sharing-a-gpu.ipynb",
        "Sharing a GPU",
        15,
        ("lab", "cluster", "gpu-operator"),
        0,
    ),
)


def find(name: str) -> Lesson:
    """The lesson of that name; its file's name, with or without `.ipynb`, will do too.

    Raises UnknownStep with near names.
    """
    for lesson in LESSONS:
        if name in (lesson.name, lesson.file, lesson.file.removesuffix(".ipynb")):
            return lesson
    names = [lesson.name for lesson in LESSONS]
    near = get_close_matches(name, names, n=1)
    raise UnknownStep(
        f"there is no notebook {name!r}",
        step="looking for a notebook",
        todo=f"did you mean {near[0]!r}?" if near else f"the names are {', '.join(names)}",
    )

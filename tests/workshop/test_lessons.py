"""The notebooks that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuworkshop.errors import UnknownStep
from gpuworkshop.workshop import lessons

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def test_every_lesson_has_its_notebook_and_the_reverse() -> None:
    assert [lesson.file for lesson in lessons.LESSONS] == sorted(p.name for p in NOTEBOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("name", ["prometheus-live", "08-prometheus-live", "08-prometheus-live.ipynb"])
def test_found_by_name_or_file(name: str) -> None:
    assert lessons.find(name).name == "prometheus-live"


def test_unknown_name_gets_a_near_one() -> None:
    with pytest.raises(UnknownStep, match="did you mean 'prometheus-live'"):
        lessons.find("promethues-live")

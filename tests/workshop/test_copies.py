"""The learner's notebooks: brought up to date when untouched, never overwritten when touched."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuworkshop.settings import Settings
from gpuworkshop.workshop import copies


@pytest.fixture
def checkout(tmp_path: Path) -> Settings:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "00-a.ipynb").write_text("first", encoding="utf-8")
    return Settings(root=tmp_path, state=tmp_path / ".workshop")


def test_first_time_copies(checkout: Settings) -> None:
    assert copies.refresh(checkout) == []
    assert (checkout.notebooks / "00-a.ipynb").read_text(encoding="utf-8") == "first"


def test_untouched_copy_follows_the_checkout(checkout: Settings) -> None:
    copies.refresh(checkout)
    (checkout.root / "notebooks" / "00-a.ipynb").write_text("second", encoding="utf-8")
    assert copies.refresh(checkout) == []
    assert (checkout.notebooks / "00-a.ipynb").read_text(encoding="utf-8") == "second"


def test_touched_copy_stays_and_is_told_of(checkout: Settings) -> None:
    copies.refresh(checkout)
    mine = checkout.notebooks / "00-a.ipynb"
    mine.write_text("my notes", encoding="utf-8")
    assert copies.refresh(checkout) == []
    (checkout.root / "notebooks" / "00-a.ipynb").write_text("second", encoding="utf-8")
    (told,) = copies.refresh(checkout)
    assert "00-a.ipynb" in told
    assert mine.read_text(encoding="utf-8") == "my notes"


def test_deleted_copy_comes_back(checkout: Settings) -> None:
    copies.refresh(checkout)
    (checkout.notebooks / "00-a.ipynb").unlink()
    copies.refresh(checkout)
    assert (checkout.notebooks / "00-a.ipynb").read_text(encoding="utf-8") == "first"


@pytest.mark.parametrize("record", ["{", "[]", ""])
def test_damaged_record_never_costs_the_learners_work(checkout: Settings, record: str) -> None:
    copies.refresh(checkout)
    mine = checkout.notebooks / "00-a.ipynb"
    mine.write_text("my notes", encoding="utf-8")
    (checkout.state / "notebooks.json").write_text(record, encoding="utf-8")
    copies.refresh(checkout)
    assert mine.read_text(encoding="utf-8") == "my notes"

"""A question: guess first, then read why."""

from __future__ import annotations

import pytest

from gpuworkshop.workshop.quiz import Quiz


@pytest.fixture
def quiz() -> Quiz:
    return Quiz("Which?", choices=["a", "b"], answer="b", because="It is.")


def test_right_and_wrong_guess_both_explain(quiz: Quiz) -> None:
    assert quiz.guess("b") == "Yes: it is b. It is."
    assert quiz.guess("a") == "Not a: it is b. It is."


def test_text_asks_and_does_not_tell(quiz: Quiz) -> None:
    assert "Which?" in str(quiz)
    assert "It is." not in str(quiz)


def test_answer_must_be_a_choice() -> None:
    with pytest.raises(ValueError, match="none of the choices"):
        Quiz("Which?", choices=["a"], answer="b", because="")

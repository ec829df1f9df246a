"""A question: guess first, then read why."""

from __future__ import annotations

import pytest

from gpuworkshop.errors import UnknownStep
from gpuworkshop.workshop.quiz import QUIZZES, Quiz, find

QUIZ = Quiz("Which?", ("a", "b"), "b", "It is <so>.")


def test_right_and_wrong_guess_both_explain() -> None:
    assert QUIZ.guess("b").ok
    assert QUIZ.guess("b").seen == "it is b. It is <so>."
    assert not QUIZ.guess("a").ok
    assert QUIZ.guess("a").seen == "not a: it is b. It is <so>."


def test_asking_does_not_tell() -> None:
    _, _, reply = QUIZ.widget().children
    assert "Which?" in str(QUIZ)
    assert "It is" not in str(QUIZ)
    assert reply.value == ""


def test_a_button_replies() -> None:
    _, buttons, reply = QUIZ.widget().children
    buttons.children[0].click()
    assert "It is &lt;so&gt;." in reply.value
    assert "not a" in reply.value


@pytest.mark.parametrize("quiz", QUIZZES.values(), ids=QUIZZES)
def test_every_answer_is_a_choice(quiz: Quiz) -> None:
    assert quiz.answer in quiz.choices


def test_an_unknown_question_is_refused() -> None:
    with pytest.raises(UnknownStep, match="wasted-gpu"):
        find("wasted-cpu")

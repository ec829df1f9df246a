"""A verdict reads well as text, in HTML, and as a truth value."""

from __future__ import annotations

from gpuworkshop.workshop import Verdict


def test_good_verdict() -> None:
    good = Verdict(True, "The lab is up", "all healthy", todo="never shown")
    assert good
    assert str(good) == "✔ The lab is up: all healthy"


def test_bad_verdict_says_what_to_do() -> None:
    bad = Verdict(False, "The lab is up", "prometheus is stopped", todo="./run.sh")
    assert not bad
    assert str(bad).splitlines() == [
        "✘ The lab is up: prometheus is stopped",
        "  What to do: ./run.sh",
    ]


def test_html_is_escaped_and_does_not_rely_on_colour() -> None:
    html = Verdict(False, "s", "<script>", todo="a & b")._repr_html_()
    assert "&lt;script&gt;" in html
    assert "a &amp; b" in html
    assert "✘" in html

"""YAML as Prometheus reads it: texts stay texts, and what is wrong has a line."""

from __future__ import annotations

import pytest

from gpuworkshop.cwagent import yaml_text


@pytest.mark.parametrize("word", ["yes", "1_000", "0x1F", "2026-12-01", "1.50", "!!int 7", "!!timestamp x"])
def test_a_scalar_stays_as_it_was_written(word: str) -> None:
    assert yaml_text.load(f"a: {word}") == {"a": word.split()[-1]}


def test_null_and_merges_keep_their_meaning() -> None:
    assert yaml_text.load("a: ~\nb: &b {x: 1}\nc: {<<: *b, y: 2}") == {
        "a": None,
        "b": {"x": "1"},
        "c": {"x": "1", "y": "2"},
    }
    assert yaml_text.load("") is None


BOMB = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2", "line 2, column 1: key"),
        ("a: 1\nb: [", "line 2"),
        ("a: &a [*a]", "contains itself"),
        (BOMB, "aliases written out"),
        ('a: "\\ud800"', "line 1, column 4: half a character"),
        ('a: "\\UFFFFFFFF"', "a character that does not exist"),
        ("a: \x00", "line 1: a character that YAML does not allow"),
        ("[" * 1500, "nested too deeply"),
        ("a: 1\n---\nb: 2", "line 2"),
        ("a: !!python/object:os.system x", "line 1, column 4"),
        ("? [a]\n: b", "line 1"),
    ],
)
def test_what_is_wrong_has_a_line(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="line") as caught:
        yaml_text.load(text)
    assert said in str(caught.value)


def test_a_place_is_found_in_yaml_and_in_json() -> None:
    text = '{\n\t"a": [\n\t\t1,\n\t\t{"b": 2}\n\t]\n}'
    assert yaml_text.line_of(text, ("a", 1, "b")) == 4
    assert yaml_text.line_of(text, ("a", 7)) == 2
    assert yaml_text.line_of("{", ("a",)) == 0

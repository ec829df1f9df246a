"""YAML in which every scalar stays the text that was written, as Prometheus reads it into its strings.

`regex: yes` is the text `yes`, not a truth value. Only null and merge keys keep their meaning; a key given
twice is an error, as it is for Prometheus. What aliases would blow up beyond reason is refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import yaml

MOST_BYTES = 10_000_000
MOST_NODES = 200_000
MOST_BYTES_TO_POINT_INTO = 1_000_000
_NULL, _MERGE = "tag:yaml.org,2002:null", "tag:yaml.org,2002:merge"


class _TextLoader(yaml.SafeLoader):
    """Resolves nothing but null and `<<`."""

    def as_text(self, node: yaml.ScalarNode) -> str:
        """The scalar as it was written."""
        return str(self.construct_scalar(node))

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    raise _error(f'key "{key.value}" already set in map', key)
                seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


_TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag in (_NULL, _MERGE)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
# A tag such as !!int changes nothing: Prometheus puts the text into a string all the same.
for _tag in ("bool", "int", "float", "timestamp", "binary"):
    _TextLoader.add_constructor(f"tag:yaml.org,2002:{_tag}", _TextLoader.as_text)


def load(text: str) -> Any:
    """The one document of `text`. Raises ValueError, with the line, for what is no YAML."""
    if len(text) > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES} characters")
    loader = None
    try:
        loader = _TextLoader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _weigh(node, {}, set())
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise ValueError(f"{_where(error.problem_mark or error.context_mark)}{_words(error)}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ValueError(f"line {line}: a character that YAML does not allow") from None
    except RecursionError:
        raise ValueError("line 1: it is nested too deeply") from None
    except (ValueError, OverflowError):  # an escape such as \UFFFFFFFF
        mark = loader.get_mark() if loader else None
        raise ValueError(f"{_where(mark)}a character that does not exist") from None


def line_of(text: str, path: tuple[str | int, ...]) -> int:
    """The line, from 1, at which the value at `path` begins, or the nearest above it; 0 if it can't be told.

    It serves JSON too, of which YAML knows nearly all; tabs count as spaces.
    """
    node = _composed(text)
    for step in path:
        below = _below(node, step)
        if below is None:
            break
        node = below
    return node.start_mark.line + 1 if node else 0


@lru_cache(maxsize=4)
def _composed(text: str) -> yaml.Node | None:
    if len(text) > MOST_BYTES_TO_POINT_INTO:
        return None
    try:
        node: yaml.Node | None = yaml.compose(text.replace("\t", " "), Loader=_TextLoader)
    except (yaml.YAMLError, RecursionError, ValueError, OverflowError):
        return None
    return node


def _below(node: yaml.Node | None, step: str | int) -> yaml.Node | None:
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        found: yaml.Node = node.value[step]
        return found
    return None


def _weigh(node: yaml.Node, known: dict[int, int], above: set[int]) -> int:
    """How many nodes there are when each alias is written out. Raises for too many, and for loops."""
    if id(node) in above:
        raise _error("an anchor that contains itself", node)
    if id(node) in known:
        return known[id(node)]
    weight = 1
    if isinstance(node, yaml.ScalarNode):
        if any("\ud800" <= character <= "\udfff" for character in node.value):
            raise _error("half a character (a lone surrogate)", node)
    else:
        above.add(id(node))
        pairs = isinstance(node, yaml.MappingNode)
        parts = [part for pair in node.value for part in pair] if pairs else node.value
        weight += sum(_weigh(part, known, above) for part in parts)
        above.discard(id(node))
    if weight > MOST_NODES:
        raise _error(f"more than {MOST_NODES} values, aliases written out", node)
    known[id(node)] = weight
    return weight


def _error(problem: str, node: yaml.Node) -> yaml.constructor.ConstructorError:
    return yaml.constructor.ConstructorError(None, None, problem, node.start_mark)


def _where(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""


def _words(error: yaml.MarkedYAMLError) -> str:
    return str(error.problem or error.context)

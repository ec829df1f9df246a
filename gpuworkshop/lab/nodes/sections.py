"""YAML whose every complaint names the line: eksctl's configuration is read by hand, and mended by hand.

A `Section` is a mapping of the file. Like eksctl it takes no field twice, none that it does not know, and no
number or truth value where a text belongs.
"""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from gpuworkshop.errors import ClusterConfigError

STEP = "reading the cluster configuration"
AS_EKSCTL = "mend the file; it is one YAML document, as eksctl takes it"


class _Mapping(dict[Any, Any]):
    """A mapping that knows its line, and the line of each key."""

    def __init__(self) -> None:
        super().__init__()
        self.line = 0
        self.lines: dict[Any, int] = {}


class _Loader(yaml.SafeLoader):
    """The safe loader, with lines, and without a second value for a key."""

    def construct_located(self, node: yaml.MappingNode) -> Iterator[_Mapping]:
        found = _Mapping()
        yield found
        found.line, own = node.start_mark.line + 1, list(node.value)
        self.flatten_mapping(node)
        found.update(self.construct_mapping(node, deep=True))
        for key_node, _ in own:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if key in found.lines:
                seen = f"{key!r} is there twice"
                raise yaml.constructor.ConstructorError(None, None, seen, key_node.start_mark)
            found.lines[key] = key_node.start_mark.line + 1


_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_located)


@dataclass(frozen=True)
class Section:
    """One mapping of the file at `path`; `name` is what messages call it, "" for the whole."""

    path: Path
    name: str
    values: _Mapping = field(repr=False)

    def wrong(self, key: str, seen: str, todo: str) -> ClusterConfigError:
        """The error about a field of this section."""
        line = self.values.lines.get(key, self.values.line)
        about = f"{self.name}: {seen}" if self.name else seen
        return ClusterConfigError(f"{self.path}, line {line}: {about}", step=STEP, todo=todo)

    def check_fields(self, known: Collection[str]) -> None:
        """Refuse a field that eksctl does not know."""
        for key in self.values:
            if key not in known:
                near = get_close_matches(str(key), known, n=1)
                todo = f"did you mean {near[0]}?" if near else "take it out; eksctl refuses it too"
                raise self.wrong(key, f"there is no field {key!r}", todo)

    def text(self, key: str, example: str = "") -> str:
        """A text; with an example it must be there, else it is "" where it is not."""
        value = self.values.get(key)
        if value is None and not example:
            return ""
        if not isinstance(value, str) or (example and not value):
            what = "missing" if value is None else f"{reprlib.repr(value)}, which is no text"
            todo = f"write `{key}: {example}`, for example" if value is None else "put it in quotes"
            raise self.wrong(key, f"{key} is {what}", todo)
        return value

    def number(self, key: str, most: int) -> int | None:
        """A whole number from 0 to `most`."""
        value = self.values.get(key)
        if value is not None and (type(value) is not int or not 0 <= value <= most):
            raise self.wrong(key, f"{key} is {reprlib.repr(value)}", f"write a number from 0 to {most}")
        return value

    def flag(self, key: str) -> bool:
        """True or false, false where it is not."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, f"{key} is {reprlib.repr(value)}", "write true or false")
        return bool(value)

    def section(self, key: str) -> Section:
        """A mapping below this one; an empty one where there is none."""
        return self._section(key, key, self.values.get(key))

    def sections(self, key: str, name: str) -> list[Section]:
        """The mappings of a list; each is called `name` and its place."""
        items = enumerate(self._list(key), start=1)
        return [self._section(key, f"{name} {number}", value) for number, value in items]

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        for value in (found := self._list(key)):
            if not isinstance(value, str):
                raise self.wrong(key, f"{key} has {reprlib.repr(value)}, which is no text", "quote it")
        return tuple(found)

    def text_map(self, key: str) -> dict[str, str]:
        """A mapping of texts to texts, such as labels."""
        below = self.section(key)
        for name in below.values:
            if not isinstance(name, str):
                raise below.wrong(name, f"{reprlib.repr(name)} is no text", "put it in quotes")
            if below.values[name] is not None:
                below.text(name)
        return {name: value or "" for name, value in below.values.items()}

    def _section(self, key: str, name: str, value: Any) -> Section:
        name = f"{self.name}: {name}" if self.name else name
        if value is None:
            value = _Mapping()
            value.line = self.values.lines.get(key, self.values.line)
        if not isinstance(value, _Mapping):
            seen = f"a mapping belongs there, not {reprlib.repr(value)}"
            raise self.wrong(key, f"{name}: {seen}" if not self.name else seen, "write `key: value` pairs")
        return Section(self.path, name, value)

    def _list(self, key: str) -> list[Any]:
        value = self.values.get(key)
        if value is not None and not isinstance(value, list):
            raise self.wrong(key, f"{key} is no list", f"write `{key}:`, and below it lines with `- `")
        return value or []


def load(path: Path) -> Section:
    """The mapping that the file holds. Raises ClusterConfigError that says what is wrong, and where."""
    try:
        with path.open(encoding="utf-8") as file:
            found = yaml.load(file, _Loader)  # noqa: S506  a safe loader, as its base says
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        said = ", ".join(filter(None, (error.context, error.problem)))
        raise ClusterConfigError(f"{path}{line}: {said}", step=STEP, todo=AS_EKSCTL) from error
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise ClusterConfigError(f"{path} cannot be read: {error}", step=STEP, todo=AS_EKSCTL) from error
    if not isinstance(found, _Mapping):
        raise ClusterConfigError(
            f"{path} holds {reprlib.repr(found)}, and no mapping", step=STEP, todo=AS_EKSCTL
        )
    return Section(path, "", found)

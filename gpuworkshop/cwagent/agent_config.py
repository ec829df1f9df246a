"""The CloudWatch agent's JSON, as far as it decides which series become metrics, and under what dimensions.

The agent forgives a great deal in silence, and so this reader notes what it forgave: each `Fault` is
something that the agent would skip, drop or misread, with the line where it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuworkshop.cwagent import yaml_text
from gpuworkshop.cwagent.declarations import Declaration, Fault, read_declaration
from gpuworkshop.errors import AgentConfigError

DEFAULT_NAMESPACE = "ContainerInsights/Prometheus"
DEFAULT_FLUSH_S = 60.0
UNKNOWN_CLUSTER = "from-the-tags-of-the-instance"
SECTION = ("logs", "metrics_collected", "prometheus")
Path = tuple[str | int, ...]
_STRING_OR_CONSTANT = re.compile(r'"(?:[^"\\]|\\.)*"|(NaN|-?Infinity)')


@dataclass(frozen=True, eq=False)
class AgentConfig:
    """What the agent was told; two are the same only if they are one object.

    `every_label` is what becomes of a lone matcher that does not compile: all series go out, with every
    label as a dimension.
    """

    namespace: str = DEFAULT_NAMESPACE
    units: Mapping[str, str] = field(default_factory=dict)
    declarations: tuple[Declaration, ...] = ()
    every_label: bool = False
    cluster_name: str = ""
    log_group: str = ""
    flush_s: float = DEFAULT_FLUSH_S
    faults: tuple[Fault, ...] = ()

    @property
    def in_use(self) -> tuple[Declaration, ...]:
        """The declarations that the agent heeds."""
        return tuple(each for each in self.declarations if each.in_use)

    @property
    def cluster(self) -> str:
        """The value of ClusterName; a word for it where the agent would ask EC2's tags."""
        return self.cluster_name or UNKNOWN_CLUSTER

    def log_group_of(self, labels: Mapping[str, str]) -> str:
        """The log group of a series with those labels."""
        return (
            self.log_group or f"/aws/containerinsights/{labels.get('ClusterName', self.cluster)}/prometheus"
        )


def parse_agent_config(text: str) -> AgentConfig:
    """The agent's configuration. Raises AgentConfigError, with the line, for what is no JSON."""
    content = _json(text)
    reader = _Reader(text)
    logs = reader.mapping(content, SECTION[:1])
    section = reader.mapping(logs, SECTION[:2])
    prometheus = reader.mapping(section, SECTION)
    if not prometheus and not reader.faults:
        reader.note("no-prometheus", f"there is no section {'.'.join(SECTION)}", SECTION)
    return _config(reader, logs, prometheus)


def _json(text: str) -> object:
    try:
        return _whole(json.loads(text.removeprefix("\ufeff"), parse_constant=_no_constant, parse_int=float))
    except json.JSONDecodeError as error:
        raise _not_json(f"line {error.lineno}, column {error.colno}: {_hint(error)}", error.lineno) from None
    except RecursionError:
        raise _not_json("line 1: it is nested too deeply", 1) from None
    except ValueError as error:
        line = _line_of_constant(text)
        raise _not_json(f"line {line}: {error}", line) from None


def _no_constant(word: str) -> object:
    raise ValueError(f"{word}, which JSON does not know")


def _line_of_constant(text: str) -> int:
    """Where the first word such as NaN stands outside of strings."""
    found = (match for match in _STRING_OR_CONSTANT.finditer(text) if match[1])
    return text.count("\n", 0, next(found).start()) + 1


def _whole(value: Any) -> Any:
    """The value with U+FFFD for half a character, as Go reads it."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {_whole(name): _whole(each) for name, each in value.items()}
    return value


def _hint(error: json.JSONDecodeError) -> str:
    """What is wrong there, in plain words where the cause is a common one."""
    before = error.doc[: error.pos].rstrip()
    at = error.doc[error.pos : error.pos + 1]
    if at in ("]", "}") and before.endswith(","):
        return f"a comma before the closing {at}, which JSON does not allow"
    if "trailing comma" in error.msg:
        return "a comma before a closing bracket, which JSON does not allow"
    if error.doc[error.pos : error.pos + 2] in ("//", "/*") or at == "#":
        return "a comment, which JSON does not know"
    return error.msg


class _Reader:
    """Takes values out of the JSON and notes, with its line, each that is not what the agent expects."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.faults: list[Fault] = []

    def note(self, code: str, seen: str, path: Path) -> None:
        self.faults.append(Fault(code, seen, yaml_text.line_of(self._text, path)))

    def mapping(self, parent: object, path: Path) -> Mapping[str, Any]:
        """The mapping under the last word of `path` in `parent`; empty if it is missing or something else."""
        value = parent.get(path[-1], {}) if isinstance(parent, Mapping) else parent
        if isinstance(value, Mapping):
            return value
        self.note("wrong-shape", f"{'.'.join(map(str, path))} is no object", path)
        return {}

    def text(self, parent: Mapping[str, Any], path: Path, default: str = "") -> str:
        value = parent.get(str(path[-1]), default)
        if isinstance(value, str):
            return value
        self.note("wrong-shape", f"{'.'.join(map(str, path))} is no text", path)
        return default

    def seconds(self, parent: Mapping[str, Any], path: Path, default: float) -> float:
        value = parent.get(str(path[-1]), default)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e6:
            return float(value)
        self.note("wrong-shape", f"{'.'.join(map(str, path))} is no number of seconds", path)
        return default


def _config(reader: _Reader, logs: Mapping[str, Any], prometheus: Mapping[str, Any]) -> AgentConfig:
    emf_path = (*SECTION, "emf_processor")
    emf = reader.mapping(prometheus, emf_path)
    declarations = _declarations(reader, emf, (*emf_path, "metric_declaration"))
    wanted = [each for each in declarations if not each.skipped]
    units = reader.mapping(emf, (*emf_path, "metric_unit"))
    flush_s = reader.seconds(logs, ("logs", "force_flush_interval"), DEFAULT_FLUSH_S)
    return AgentConfig(
        namespace=reader.text(emf, (*emf_path, "metric_namespace"), DEFAULT_NAMESPACE) or DEFAULT_NAMESPACE,
        units={name: reader.text(units, (*emf_path, "metric_unit", name)) for name in units},
        declarations=tuple(declarations),
        every_label=bool(wanted) and all(each.matcher_error for each in wanted),
        cluster_name=reader.text(prometheus, (*SECTION, "cluster_name")),
        log_group=reader.text(prometheus, (*SECTION, "log_group_name")),
        flush_s=flush_s,
        faults=tuple(reader.faults),
    )


def _declarations(reader: _Reader, emf: Mapping[str, Any], path: Path) -> list[Declaration]:
    given = emf.get(str(path[-1]), [])
    if not isinstance(given, list):
        reader.note("wrong-shape", "metric_declaration is no list", path)
        return []
    declarations = []
    for place, entry in enumerate(given):
        declaration, faults = read_declaration(entry, place)
        for fault, below in faults:
            reader.note(fault.code, fault.seen, (*path, place, *below))
        declarations.append(declaration)
    return declarations


def _not_json(seen: str, line: int) -> AgentConfigError:
    return AgentConfigError(
        f"it is not JSON: {seen}",
        line=line,
        step="reading the agent's configuration",
        todo="mend that line; the agent does not start with it, and nothing is uploaded",
    )

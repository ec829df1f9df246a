"""A Prometheus configuration, as far as it decides what becomes of a scrape: its jobs, checked and compiled.

Three forms are taken: a whole configuration, a list of jobs (as the agent's ConfigMap is often shown), or
one job. What Prometheus refuses is refused here, in its words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpuworkshop.cwagent import yaml_text
from gpuworkshop.cwagent.discovery import LABELS
from gpuworkshop.cwagent.rules import Rule, compile_rules, quoted
from gpuworkshop.errors import RelabelError, ScrapeConfigError

DEFAULT_INTERVAL_S = 60.0
DEFAULT_TIMEOUT_S = 10.0
DEFAULT_PATH = "/metrics"
KUBERNETES = "kubernetes_sd_configs"
_TRUE = {"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"}
_FALSE = {"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}
_UNITS_S = {"y": 31_536_000, "w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1, "ms": 0.001}
_DURATION = re.compile("".join(rf"(?:(\d+){unit})?" for unit in _UNITS_S))
_WORDS = """
    job_name honor_labels honor_timestamps track_timestamps_staleness params scrape_interval scrape_timeout
    scrape_protocols scrape_fallback_protocol scrape_native_histograms scrape_classic_histograms
    always_scrape_classic_histograms convert_classic_histograms_to_nhcb metrics_path scheme
    enable_compression enable_http2 scrape_failure_log_file body_size_limit sample_limit target_limit
    label_limit label_name_length_limit label_value_length_limit native_histogram_bucket_limit
    native_histogram_min_bucket_factor keep_dropped_targets metric_name_validation_scheme
    metric_name_escaping_scheme extra_scrape_metrics basic_auth authorization oauth2 follow_redirects
    bearer_token bearer_token_file tls_config proxy_url no_proxy proxy_from_environment
    proxy_connect_header http_headers relabel_configs metric_relabel_configs static_configs
"""
JOB_FIELDS = frozenset(_WORDS.split())


@dataclass(frozen=True)
class ScrapeJob:
    """One `scrape_config`. `discovery` holds its `kubernetes_sd_configs`, `static` the labels of each static
    target with its `__address__`; `other_discovery` says whether it finds targets in other ways too.
    """

    name: str
    rules: tuple[Rule, ...] = ()
    metric_rules: tuple[Rule, ...] = ()
    honor_labels: bool = False
    honor_timestamps: bool = True
    scheme: str = "http"
    metrics_path: str = DEFAULT_PATH
    interval_s: float = DEFAULT_INTERVAL_S
    timeout_s: float = DEFAULT_TIMEOUT_S
    sample_limit: int = 0
    params: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    discovery: tuple[Mapping[str, Any], ...] = ()
    static: tuple[Mapping[str, str], ...] = ()
    other_discovery: bool = False

    @property
    def roles(self) -> tuple[str, ...]:
        """The Kubernetes roles by which it discovers its targets."""
        return tuple(str(entry["role"]) for entry in self.discovery)


def parse_scrape_config(text: str) -> list[ScrapeJob]:
    """The jobs of a configuration in one of the three forms. Raises ScrapeConfigError, with the line."""
    try:
        content = yaml_text.load(text)
    except ValueError as error:
        raise _wrong(f"it is not YAML: {error}", _line_said(str(error))) from None
    entries, above, defaults = _entries(content)
    jobs: list[ScrapeJob] = []
    for place, entry in enumerate(entries):
        path: tuple[str | int, ...] = () if entry is content else (*above, place)
        try:
            jobs.append(_new_job(entry, defaults, jobs))
        except RelabelError as error:
            line = yaml_text.line_of(text, (*path, *error.path))
            raise _wrong(f"line {line}: {_title(entry, place)}: {error.seen}", line) from error
        except ValueError as error:
            line = yaml_text.line_of(text, path)
            raise _wrong(f"line {line}: {_title(entry, place)}: {error}", line) from error
    return jobs


def _line_said(seen: str) -> int:
    match = re.match(r"line (\d+)", seen)
    return int(match[1]) if match else 0


def _new_job(entry: object, defaults: Mapping[str, Any], before: list[ScrapeJob]) -> ScrapeJob:
    job = _job(entry, defaults)
    if any(job.name == each.name for each in before):
        raise ValueError(f'found multiple scrape configs with job name "{job.name}"')
    return job


def parse_duration(text: str) -> float:
    """Seconds of `1m30s`, Prometheus's form of a duration. Raises ValueError."""
    match = _DURATION.fullmatch(text)
    if text == "0":
        return 0.0
    if not text or match is None or len(text) > 30:
        raise ValueError(f'not a valid duration string: "{text[:60]}"')
    parts = zip(match.groups(), _UNITS_S.values(), strict=True)
    return float(sum(int(number) * unit for number, unit in parts if number))


def _entries(content: object) -> tuple[list[Any], tuple[str, ...], Mapping[str, Any]]:
    """The jobs as they are written, the path to their list, and the `global` section that goes with them."""
    if isinstance(content, list):
        return content, (), {}
    if not isinstance(content, Mapping):
        raise _wrong("line 1: it holds neither a configuration nor jobs", 1)
    if "job_name" in content:
        return [content], (), {}
    if "scrape_configs" not in content:
        known = ", ".join(map(str, list(content)[:5])) or "nothing"
        raise _wrong(f"line 1: it has no scrape_configs and is no job; its keys are: {known[:200]}", 1)
    jobs, defaults = content["scrape_configs"], content.get("global") or {}
    if not isinstance(jobs or [], list) or not isinstance(defaults, Mapping):
        raise _wrong("line 1: scrape_configs is a list of jobs, and global a mapping", 1)
    return jobs or [], ("scrape_configs",), defaults


def _title(entry: object, place: int) -> str:
    name = entry.get("job_name") if isinstance(entry, Mapping) else None
    return f"job {name!r}" if name else f"scrape_configs[{place}]"


def _job(entry: object, defaults: Mapping[str, Any]) -> ScrapeJob:
    if not isinstance(entry, Mapping):
        raise ValueError("empty or null scrape config section")  # noqa: TRY004 - Prometheus's words
    for name in entry:
        if name not in JOB_FIELDS and not str(name).endswith("_sd_configs"):
            raise ValueError(f"field {name} not found in type config.ScrapeConfig")
    if not _string(entry, "job_name", ""):
        raise ValueError("job_name is empty")
    interval_s, timeout_s = _times(entry, defaults)
    return ScrapeJob(
        name=_string(entry, "job_name", ""),
        rules=compile_rules(entry.get("relabel_configs"), "relabel_configs"),
        metric_rules=compile_rules(entry.get("metric_relabel_configs"), "metric_relabel_configs"),
        honor_labels=_truth(entry, "honor_labels", default=False),
        honor_timestamps=_truth(entry, "honor_timestamps", default=True),
        scheme=_string(entry, "scheme", "http"),
        metrics_path=_string(entry, "metrics_path", DEFAULT_PATH),
        interval_s=interval_s,
        timeout_s=timeout_s,
        sample_limit=_whole(entry, "sample_limit"),
        params=_params(entry.get("params")),
        discovery=_discovery(entry),
        static=tuple(_static(_mappings(entry, "static_configs"))),
        other_discovery=any(str(name).endswith("_sd_configs") and name != KUBERNETES for name in entry),
    )


def _times(entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> tuple[float, float]:
    own = _seconds(entry, "scrape_timeout")
    interval_s = (
        _seconds(entry, "scrape_interval") or _seconds(defaults, "scrape_interval") or DEFAULT_INTERVAL_S
    )
    timeout_s = own or _seconds(defaults, "scrape_timeout") or DEFAULT_TIMEOUT_S
    if timeout_s > interval_s:
        if own:
            raise ValueError("scrape timeout greater than scrape interval")
        timeout_s = interval_s
    return interval_s, timeout_s


def _seconds(section: Mapping[str, Any], name: str) -> float:
    """A duration; 0, which is none, where it is left out."""
    text = _string(section, name, "")
    return parse_duration(text) if text else 0.0


def _string(entry: Mapping[str, Any], name: str, default: str) -> str:
    value = entry.get(name, default)
    if isinstance(value, Mapping | list):
        raise ValueError(f"{name} is a text")  # noqa: TRY004 - a wrong file, not a wrong call
    return default if value is None else str(value)


def _truth(entry: Mapping[str, Any], name: str, *, default: bool) -> bool:
    text = _string(entry, name, str(default))
    if text not in _TRUE | _FALSE:
        raise ValueError(f"cannot unmarshal !!str `{text[:40]}` into bool: {name}")
    return text in _TRUE


def _whole(entry: Mapping[str, Any], name: str) -> int:
    text = _string(entry, name, "0")
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise ValueError(f"cannot unmarshal !!str `{text[:40]}` into uint: {name}")
    return int(text)


def _mappings(entry: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = entry.get(name) or []
    if not isinstance(value, list) or not all(isinstance(each, Mapping) for each in value):
        raise ValueError(f"{name} is a list of mappings")
    return value


def _discovery(entry: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    sections = tuple(_mappings(entry, KUBERNETES))
    for section in sections:
        if not section.get("role"):
            raise ValueError(f"role missing (one of: {', '.join(LABELS)})")
        if str(section["role"]) not in LABELS:
            raise ValueError(f"unknown Kubernetes SD role {quoted(str(section['role'])[:60])}")
    return sections


def _params(value: object) -> dict[str, tuple[str, ...]]:
    params = value or {}
    if not isinstance(params, Mapping) or not all(isinstance(each, list) for each in params.values()):
        raise ValueError("params is a mapping of names to lists")
    return {str(name): tuple(map(str, values)) for name, values in params.items()}


def _static(groups: list[Mapping[str, Any]]) -> list[Mapping[str, str]]:
    found: list[Mapping[str, str]] = []
    for group in groups:
        labels, targets = group.get("labels") or {}, group.get("targets") or []
        if not (isinstance(labels, Mapping) and isinstance(targets, list)):
            raise ValueError("static_configs has targets and labels")  # noqa: TRY004 - a wrong file
        texts = {str(name): str(value) for name, value in labels.items()}
        for target in map(str, targets):
            if "/" in target:
                raise ValueError(f"{quoted(target[:60])} is not a valid hostname")
        found += [{**texts, "__address__": str(target)} for target in targets]
    return found


def _wrong(seen: str, line: int) -> ScrapeConfigError:
    return ScrapeConfigError(
        seen,
        line=line,
        step="reading the Prometheus configuration",
        todo="mend the file; Prometheus would refuse it as it is",
    )

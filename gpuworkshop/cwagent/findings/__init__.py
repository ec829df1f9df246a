"""The faults that people make with this pipeline. Each is a pure function from a case to findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.agent_faults import agent_faults
from gpuworkshop.cwagent.findings.cluster_names import cluster_name_not_set
from gpuworkshop.cwagent.findings.dimension_names import dimension_on_no_series
from gpuworkshop.cwagent.findings.directives import too_many_metrics
from gpuworkshop.cwagent.findings.doubled_series import series_doubled
from gpuworkshop.cwagent.findings.dropped_targets import every_target_dropped
from gpuworkshop.cwagent.findings.exported_labels import exporters_pod_on_idle_gpus, pod_moved_to_exported
from gpuworkshop.cwagent.findings.finding import ERROR, WARNING, Finding
from gpuworkshop.cwagent.findings.idle_gpus import idle_gpus_lost
from gpuworkshop.cwagent.findings.keep_rules import no_keep_rule
from gpuworkshop.cwagent.findings.matchers import matcher_does_not_compile, matcher_matches_nothing
from gpuworkshop.cwagent.findings.merged_pods import pods_merged
from gpuworkshop.cwagent.findings.meta_labels import unknown_meta_label
from gpuworkshop.cwagent.findings.only_logged import only_logged
from gpuworkshop.cwagent.findings.sample_limits import sample_limit_exceeded
from gpuworkshop.cwagent.findings.served import path_not_served, port_not_served
from gpuworkshop.cwagent.findings.types import no_type_line
from gpuworkshop.cwagent.findings.units import no_units
from gpuworkshop.cwagent.findings.variables import dollar_in_replacement
from gpuworkshop.cwagent.findings.waves import wave_not_showable

__all__ = ["ERROR", "EVERY", "WARNING", "Finding", "find"]

EVERY: tuple[Callable[[Case], Iterable[Finding]], ...] = (
    every_target_dropped,
    path_not_served,
    port_not_served,
    sample_limit_exceeded,
    no_type_line,
    agent_faults,
    matcher_does_not_compile,
    matcher_matches_nothing,
    dimension_on_no_series,
    pod_moved_to_exported,
    pods_merged,
    idle_gpus_lost,
    series_doubled,
    too_many_metrics,
    unknown_meta_label,
    no_keep_rule,
    exporters_pod_on_idle_gpus,
    wave_not_showable,
    dollar_in_replacement,
    no_units,
    only_logged,
    cluster_name_not_set,
)


def find(case: Case) -> list[Finding]:
    """All findings, errors first, else in the order of the way that data take."""
    found = [finding for look in EVERY for finding in look(case)]
    return sorted(dict.fromkeys(found), key=lambda finding: finding.severity != ERROR)

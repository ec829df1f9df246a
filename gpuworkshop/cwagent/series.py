"""The labels of a series after a scrape: the exporter's beside the target's, then `metric_relabel_configs`.

Where both have a label of one name, `honor_labels` decides: true keeps the exporter's, and an empty one of
its labels takes the target's away; false moves the exporter's to `exported_…`.
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuworkshop.cwagent.relabelling import Outcome, run
from gpuworkshop.cwagent.targets import Target

NAME = "__name__"
MOVED = "exported_"


def follow_labels(name: str, scraped: Mapping[str, str], target: Target) -> Outcome:
    """The labels, with `__name__`, that Prometheus would store, or the metric rule that drops the series."""
    labels = merged(scraped, target.labels, honor=target.job.honor_labels)
    labels[NAME] = name
    if not target.job.metric_rules:
        return Outcome({label: value for label, value in labels.items() if value})
    return run(labels, target.job.metric_rules)


def merged(scraped: Mapping[str, str], target: Mapping[str, str], *, honor: bool) -> dict[str, str]:
    """Both sets of labels in one."""
    if honor:
        return {**target, **scraped}
    labels = {**scraped, **target}
    for name in sorted((name for name in target if scraped.get(name)), key=len):
        moved = MOVED + name
        while labels.get(moved):
            moved = MOVED + moved
        labels[moved] = scraped[name]
    return labels

"""No `cluster_name`: the agent asks the tags of the EC2 instance, and without them there is no name."""

from __future__ import annotations

from collections.abc import Iterator

from gpuworkshop.cwagent.case import Case
from gpuworkshop.cwagent.findings.finding import WARNING, Finding
from gpuworkshop.cwagent.pipeline import CLUSTER_LABEL


def cluster_name_not_set(case: Case) -> Iterator[Finding]:
    """Where neither the agent nor a relabel rule sets it."""
    if case.agent is None or case.agent.cluster_name:
        return
    if any(each.target.labels.get(CLUSTER_LABEL) for each in case.of_interest):
        return
    yield Finding(
        "cluster-name-not-set",
        WARNING,
        "cluster_name is not set: ClusterName and the log group come from the tags of the EC2 instance, or"
        " not at all",
        'set "cluster_name" beside prometheus_config_path, and K8S_CLUSTER_NAME in the agent\'s environment',
    )

"""Pages and configurations for the tests of the agent's pipeline."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuworkshop.cwagent import findings
from gpuworkshop.cwagent.agent_config import AgentConfig, parse_agent_config
from gpuworkshop.cwagent.case import DEFAULT_WAVE_S, Case, build_case
from gpuworkshop.cwagent.findings import Finding
from gpuworkshop.cwagent.scrape_config import ScrapeJob, parse_scrape_config
from gpuworkshop.cwagent.targets import Target, follow_target
from gpuworkshop.metrics.exposition import parse_exposition

DATA = Path(__file__).parent.parent / "data"
PAGE = (DATA / "metrics-dcgm-3.1.prom").read_text()
BLOG_JOB = (DATA / "cwagent-blog-scrape-job.yaml").read_text()
BLOG_AGENT = (DATA / "cwagent-blog-cwagentconfig.json").read_text()
UTIL = "DCGM_FI_DEV_GPU_UTIL"
BUSY = f'{UTIL}{{gpu="0",UUID="GPU-a",namespace="team",pod="train-0",container="main"}} 97\n'
SECOND = f'{UTIL}{{gpu="1",UUID="GPU-b",namespace="team",pod="train-0",container="main"}} 50\n'
IDLE = f'{UTIL}{{gpu="2",UUID="GPU-c"}} 0\n'
GAUGE = f"# TYPE {UTIL} gauge\n"

JOB = """
job_name: dcgm
scrape_interval: 10s
honor_labels: true
kubernetes_sd_configs: [{role: pod}]
relabel_configs:
  - {source_labels: [__meta_kubernetes_pod_container_name], action: keep, regex: .*dcgm-exporter}
  - {source_labels: [__meta_kubernetes_pod_container_name], target_label: Service}
  - {source_labels: [__meta_kubernetes_pod_node_name], target_label: NodeName}
"""
SERVICE_JOB = """
job_name: services
scrape_interval: 10s
kubernetes_sd_configs: [{role: endpoints}]
relabel_configs:
  - {source_labels: [__meta_kubernetes_service_annotation_prometheus_io_scrape], action: keep, regex: true}
  - {source_labels: [__meta_kubernetes_service_name], target_label: Service}
"""
SETS = (("ClusterName", "namespace", "pod", "gpu"), ("ClusterName", "Service", "NodeName", "gpu"))


def declaration(**changes: Any) -> dict[str, Any]:
    """A declaration that is right for the page of GPUs, with changes."""
    return {
        "source_labels": ["Service"],
        "label_matcher": "dcgm",
        "dimensions": [list(names) for names in SETS],
        "metric_selectors": ["^DCGM_FI_"],
    } | changes


def agent_text(*declarations: Mapping[str, Any], **prometheus: Any) -> str:
    """The agent's configuration as JSON; without a declaration with the one that is right."""
    emf = {
        "metric_unit": {UTIL: "Percent"},
        "metric_declaration": list(declarations or [declaration()]),
    } | prometheus.pop("emf", {})
    section = {"cluster_name": "lab", "emf_processor": emf} | prometheus
    return json.dumps({"logs": {"metrics_collected": {"prometheus": section}}}, indent=1)


def agent(*declarations: Mapping[str, Any], **prometheus: Any) -> AgentConfig:
    return parse_agent_config(agent_text(*declarations, **prometheus))


def job(text: str = JOB) -> ScrapeJob:
    (only,) = parse_scrape_config(text)
    return only


def target(text: str = JOB, **labels: str) -> Target:
    """A target that a static configuration might give, at 10.0.0.5:9400."""
    return follow_target(job(text), {"__address__": "10.0.0.5:9400", **labels})


def case(
    page: str = GAUGE + BUSY + IDLE,
    jobs: str = JOB,
    config: AgentConfig | None = None,
    *,
    discovered: Sequence[Mapping[str, str]] = (),
    served_at: str = "",
    wave_s: float = DEFAULT_WAVE_S,
) -> Case:
    return build_case(
        parse_exposition(page),
        parse_scrape_config(jobs),
        config if config is not None else agent(),
        discovered=discovered,
        served_at=served_at,
        wave_s=wave_s,
    )


def found(built: Case) -> list[Finding]:
    return findings.find(built)


def codes(built: Case) -> set[str]:
    return {finding.code for finding in found(built)}


def jobs_of(*jobs: str) -> str:
    """Several jobs as a list."""
    return "\n".join("- " + each.strip().replace("\n", "\n  ") for each in jobs)


def only(built: Case, code: str) -> Finding:
    """The one finding of that code."""
    (finding,) = [each for each in found(built) if each.code == code]
    assert finding.message
    assert finding.fix
    return finding

"""`gpuworkshop explain`: what becomes of every target and series on the way to CloudWatch, and why."""

from __future__ import annotations

import json
import sys

import click

from gpuworkshop import settings
from gpuworkshop.cwagent import inputs, report
from gpuworkshop.cwagent.case import DEFAULT_WAVE_S
from gpuworkshop.cwagent.explanation import explain as explain_texts
from gpuworkshop.processes.tools import find_or_fetch


class _TargetType(click.ParamType[dict[str, str]]):
    """Labels of a target as discovery gives them."""

    name = "label=value,…"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, str]:
        try:
            return inputs.parse_target(str(value))
        except ValueError as error:
            self.fail(f"{error}, such as __address__=10.0.3.17:9400,job=dcgm", param, ctx)


@click.command()
@click.option("--metrics", required=True, metavar="FILE|URL", help="The exporter's metrics page.")
@click.option(
    "--scrape-config", metavar="FILE", help="A Prometheus configuration, a list of jobs, or one job."
)
@click.option(
    "--agent-config", metavar="FILE", help="The CloudWatch agent's JSON; without it Prometheus alone."
)
@click.option(
    "--target", "targets", multiple=True, type=_TargetType(), help="A target as discovery finds it."
)
@click.option("--from-cluster", is_flag=True, help="Read both from the ConfigMaps in amazon-cloudwatch.")
@click.option("--context", metavar="NAME", help="kubectl's context for --from-cluster.")
@click.option("--wave", default=DEFAULT_WAVE_S, show_default=True, help="Period in s of the load to be seen.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")
def explain(
    metrics: str,
    scrape_config: str | None,
    agent_config: str | None,
    targets: tuple[dict[str, str], ...],
    from_cluster: bool,
    context: str | None,
    wave: float,
    as_json: bool,
) -> None:
    """Say of each target whether it is scraped, of each series whether it becomes a metric, and why.

    FILE may be a manifest with ConfigMaps. Ends with 1 if a finding is an error.
    """
    if not 0 < wave < float("inf"):
        raise click.UsageError("--wave is a number of seconds, such as 40")
    scrape, agent = _configurations(scrape_config, agent_config, from_cluster, context)
    served_at = metrics if inputs.is_url(metrics) else ""
    page = inputs.read_metrics(metrics)
    found = explain_texts(page, scrape, agent, discovered=targets, served_at=served_at, wave_s=wave)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=1))
    else:
        for line in report.lines(found):
            click.echo(line)
    sys.exit(1 if found.failed else 0)


def _configurations(
    scrape_config: str | None, agent_config: str | None, from_cluster: bool, context: str | None
) -> tuple[str, str | None]:
    """The texts of Prometheus's and the agent's configuration; a file goes before the cluster."""
    scrape = inputs.read_text(scrape_config, ".yaml") if scrape_config else None
    agent = inputs.read_text(agent_config, ".json") if agent_config else None
    if from_cluster:
        of_cluster = inputs.read_cluster(find_or_fetch("kubectl", settings.load()), context)
        return scrape or of_cluster[0], agent or of_cluster[1]
    if scrape is None:
        raise click.UsageError("give --scrape-config FILE, or --from-cluster")
    return scrape, agent

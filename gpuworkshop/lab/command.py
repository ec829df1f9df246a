"""`gpuworkshop lab …`: the rehearsal cluster on the command line."""

from __future__ import annotations

import asyncio
import logging
import sys
from ipaddress import IPv4Network
from pathlib import Path

import click

from gpuworkshop import settings as settings_module
from gpuworkshop.lab.cluster_access import Access
from gpuworkshop.processes.ports import Subnet

FILE = click.Path(path_type=Path, dir_okay=False)


@click.group()
def lab() -> None:
    """The rehearsal cluster: a simulated control plane that kubectl and helm talk to."""


@lab.command()
def up() -> None:
    """Start the cluster and its Prometheus, and wait until both are healthy."""
    from gpuworkshop.lab.stage import Lab

    settings = settings_module.load()
    for service in Lab(settings).up():
        click.echo(f"{service.name}: {service.state} at {service.url}")
    click.echo(f"\nexport KUBECONFIG='{Lab(settings).kubeconfig}'")


@lab.command()
def down() -> None:
    """End the cluster's processes; its objects and all stored samples stay."""
    from gpuworkshop.lab.stage import Lab

    ended = Lab(settings_module.load()).down()
    click.echo(f"{ended} processes ended; gpuworkshop lab up goes on with all that was there")


@lab.command()
def status() -> None:
    """What runs, and the nodes of the cluster."""
    from gpuworkshop.lab.stage import Lab

    stage = Lab(settings_module.load())
    services = stage.status()
    for service in services:
        click.echo(f"{service.name:24} {service.state:11} {service.url or '':28} {service.detail}".rstrip())
    if any(service.name == "cluster" and service.state == "healthy" for service in services):
        click.echo(stage.kubectl.run("get", "nodes", "-L", "node.kubernetes.io/instance-type"))


@lab.command()
@click.option("--yes", is_flag=True, help="Do not ask. In a script nothing is asked either.")
def reset(yes: bool) -> None:
    """End the cluster and forget all of it: objects, samples, keys. The next `up` starts with none."""
    from gpuworkshop.lab.stage import Lab

    if not yes and sys.stdin.isatty():
        click.confirm("Forget the whole cluster, and all samples?", abort=True)
    Lab(settings_module.load()).reset()
    click.echo("nothing is left of the cluster; gpuworkshop lab up starts a new one")


@lab.command()
@click.option(
    "-f",
    "--config-file",
    type=FILE,
    help="An eksctl ClusterConfig; default that of last time.",
)
def create(config_file: Path | None) -> None:
    """Make the nodes of an eksctl ClusterConfig, and wait until they are ready.

    The lab is one cluster: nodes of another configuration are deleted.
    """
    from gpuworkshop.lab.stage import Lab

    click.echo(Lab(settings_module.load()).create(config_file))


@lab.command()
@click.option("--nodegroup", required=True, help="The node group's name.")
@click.option("--nodes", type=click.IntRange(0), required=True, help="How many nodes it is to have.")
def scale(nodegroup: str, nodes: int) -> None:
    """Give a node group another number of nodes, and wait until they are ready."""
    from gpuworkshop.lab.stage import Lab

    click.echo(Lab(settings_module.load()).scale(nodegroup, nodes))


@lab.command()
def charts() -> None:
    """Print the address of the lab's chart repositories, for `helm repo add`."""
    from gpuworkshop.lab.stage import Lab

    click.echo(Lab(settings_module.load()).charts_url)


@lab.command(hidden=True)
@click.option("--network", required=True, help="The claimed 127.X.0.0/16.")
@click.option("--api-port", type=int, required=True)
@click.option("--charts-port", type=int, required=True)
def serve(network: str, api_port: int, charts_port: int) -> None:
    """Be the cluster (the lab's supervisor starts this)."""
    from gpuworkshop.lab import cluster

    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s %(message)s"
    )
    access, subnet = Access(api_port, charts_port), Subnet(IPv4Network(network))
    asyncio.run(cluster.run(settings_module.load(), access, subnet))

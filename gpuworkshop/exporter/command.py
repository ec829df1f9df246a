"""`gpuworkshop exporter`: the command line of the exporter, which the lab starts like anybody else."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import socket
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import click

from gpuworkshop.errors import ExporterError
from gpuworkshop.exporter import counters, web_config
from gpuworkshop.exporter.backends.mix import BOOT
from gpuworkshop.exporter.backends.nvml.backend import NvmlBackend, open_gpus
from gpuworkshop.exporter.backends.replay import ReplayBackend
from gpuworkshop.exporter.counters import Counters
from gpuworkshop.exporter.history import History
from gpuworkshop.exporter.holders import no_migs
from gpuworkshop.exporter.pod_options import PodOptions, pod_options
from gpuworkshop.exporter.rendering import Labels, Renderer, labels
from gpuworkshop.exporter.sampler import Sampler
from gpuworkshop.exporter.schema import SCHEMAS, Schema
from gpuworkshop.exporter.server import OPEN, Address, Pages, serve
from gpuworkshop.exporter.web_config import WebConfig

_MOST_POINTS = 1_000_000
_LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


class _AddressType(click.ParamType[Address]):
    """HOST:PORT, [V6]:PORT or :PORT."""

    name = "host:port"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Address:
        host, colon, port = str(value).rpartition(":")
        if not colon or not port.isdecimal() or int(port) > 65535:
            self.fail(f"{value!r} is not HOST:PORT, such as 127.0.0.1:9400", param, ctx)
        return Address(host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port))


class _LabelType(click.ParamType[tuple[str, str]]):
    """NAME=VALUE."""

    name = "name=value"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        name, equals, text = str(value).partition("=")
        if not equals or not _LABEL_NAME.fullmatch(name):
            self.fail(f"{value!r} is not NAME=VALUE, such as job=dcgm-exporter", param, ctx)
        return name, text


@click.command()
@click.option("--gpus", type=click.Path(path_type=Path), help="YAML list of GPUs to simulate instead.")
@click.option(
    "--listen",
    "-a",
    "--address",
    type=_AddressType(),
    default="127.0.0.1:9400",
    show_default=True,
    help="Where to serve; :9400 is 127.0.0.1:9400, as nothing is served beyond this machine unless named.",
)
@click.option(
    "--interval",
    "-c",
    "--collect-interval",
    type=click.IntRange(100, 60_000),
    default=1000,
    show_default=True,
    metavar="MS",
    help="Milliseconds from one reading of the GPUs to the next.",
)
@click.option(
    "--schema",
    type=click.Choice(list(SCHEMAS)),
    default="4.8.4",
    show_default=True,
    help="The release of dcgm-exporter whose names to use.",
)
@click.option(
    "--collectors",
    "-f",
    type=click.Path(path_type=Path),
    envvar="DCGM_EXPORTER_COLLECTORS",
    show_envvar=True,
    metavar="CSV",
    help="What to export: lines of field, type and help; default the fields of dcgm-exporter's own file.",
)
@click.option(
    "--extended", is_flag=True, help="Also SM activity and occupancy, and the fp64, fp32, fp16 pipes."
)
@click.option(
    "--hostname", envvar="NODE_NAME", show_envvar=True, help="The node's name; default this machine's."
)
@pod_options
@click.option(
    "--web-config-file",
    type=click.Path(path_type=Path),
    metavar="YAML",
    help="TLS and passwords, in the format that Prometheus's exporters share.",
)
@click.option(
    "--backfill",
    nargs=2,
    type=float,
    metavar="START END",
    help="Instead of serving, write the history between two Unix times as OpenMetrics to standard output.",
)
@click.option(
    "--step", type=click.FloatRange(0.1), metavar="S", help="Seconds between back-filled points; 1."
)
@click.option(
    "--label", "target", type=_LabelType(), multiple=True, help="A label for every back-filled series."
)
def exporter(
    gpus: Path | None,
    listen: Address,
    interval: int,
    schema: str,
    collectors: Path | None,
    extended: bool,
    hostname: str | None,
    pods: PodOptions,
    web_config_file: Path | None,
    backfill: tuple[float, float] | None,
    step: float | None,
    target: tuple[tuple[str, str], ...],
) -> None:
    """Serve metrics in DCGM's exposition, of this machine's GPUs or of such as replay a real H200's trace."""
    node = hostname or socket.gethostname()
    chosen = _counters(SCHEMAS[schema], collectors, extended=extended, none=pods.attribution_only)
    renderer = Renderer(SCHEMAS[schema], node, chosen)
    if backfill:
        pods.refuse_history()
        if gpus is None:
            raise click.UsageError("only simulated GPUs have a history: --backfill needs --gpus")
        backend = ReplayBackend(gpus, node)
        span = _span(backfill, step or 1.0)
        _write(History(backend, backend, chosen.metrics, span), renderer.schema, node, list(target))
        return
    if step or target:
        raise click.UsageError("--step and --label belong to --backfill")
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    web = web_config.read(web_config_file) if web_config_file else OPEN
    with ExitStack() as stack:
        source = ReplayBackend(gpus, node) if gpus else stack.enter_context(open_gpus())
        migs = source.mig_parent if isinstance(source, NvmlBackend) else no_migs
        label = partial(labels, schema=renderer.schema, hostname=node)
        sampled = pods.attach(stack, source, migs, node, label)
        sampler = stack.enter_context(Sampler(*sampled, interval / 1000))
        what = "simulated GPUs" if gpus else "this machine's GPUs"
        asyncio.run(serve(Pages(sampler, renderer), listen, partial(_announce, what, web), web))


def _counters(schema: Schema, collectors: Path | None, *, extended: bool, none: bool) -> Counters:
    if none:
        return Counters(())
    if collectors is None:
        return counters.default(schema, extended=extended)
    if extended:
        raise click.UsageError("--extended adds to the default fields: with --collectors name them there")
    return counters.read(collectors, schema)


def _announce(what: str, web: WebConfig, address: Address) -> None:
    click.echo(f"serving {what} at {'https' if web.tls else 'http'}://{address}/metrics")


def _span(backfill: tuple[float, float], step: float) -> tuple[float, float, float]:
    start, end = backfill
    # Written so that a NaN is refused too.
    if not BOOT <= start <= end < 2**33:
        raise ExporterError(
            f"there is no history from {start:g} to {end:g}",
            step="back-filling",
            todo=f"give two Unix times in seconds, the earlier first, none before {BOOT} (the start of 2020)",
        )
    if not math.isfinite(step):
        raise click.BadParameter(f"{step} is no number of seconds", param_hint="--step")
    if (end - start) / step > _MOST_POINTS:
        raise ExporterError(
            f"{(end - start) / step:.0f} points a series are too many",
            step="back-filling",
            todo=f"take a larger --step or less time, for {_MOST_POINTS} points at most",
        )
    return start, end, step


def _write(history: History, schema: Schema, node: str, target: Labels) -> None:
    try:
        for piece in history.lines(schema, node, target):
            sys.stdout.write(piece)
        sys.stdout.flush()
    except OSError as error:
        # What is still buffered can't be written either; the interpreter would try again at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise ExporterError(
            f"standard output takes no more: {error.strerror}",
            step="back-filling",
            todo="make room on the disk, or let the reading program read to the end",
        ) from error

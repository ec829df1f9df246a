"""The step that everything stands on: the target is up, and fresh samples arrive."""

from __future__ import annotations

from gpuworkshop.metrics import PrometheusReader
from gpuworkshop.targets import Target
from gpuworkshop.workshop.steps import Step
from gpuworkshop.workshop.verdict import Verdict

FRESH_S = 2.5  # scrapes are 1 s apart
PATIENCE_S = 20.0


class TargetUp(Step):
    """The lab's exporter and Prometheus run, and Prometheus has samples of this very moment."""

    name = "lab"
    title = "The lab is up"

    def __init__(self, target: Target) -> None:
        self._target = target

    def check(self) -> Verdict:
        """Look at each process and its health address."""
        services = self._target.status()
        down = [
            f"{s.name} is {s.state}" + (f" ({s.detail})" if s.detail else "")
            for s in services
            if s.state != "healthy"
        ]
        if down or not services:
            seen = "; ".join(down) or "nothing of it runs"
            return self.failed(seen, f"ws.step({self.name!r}).apply() starts it; ./status.sh says more")
        return self.passed(", ".join(f"{s.name} is healthy at {s.url}" for s in services))

    def bring_about(self) -> None:
        """Start the processes and wait until they are healthy."""
        self._target.up()

    def verify(self) -> Verdict:
        """Wait until Prometheus has a sample of each exporter that is new."""
        missing = f"no exporter was scraped in the last {FRESH_S:g} seconds"
        return self.await_proof(self._fresh, missing, PATIENCE_S)

    def reset(self) -> Verdict:
        """End the processes; stored samples and what runs on the simulated GPUs stay."""
        self._target.down()
        return self.passed("ended; ws.step('lab').apply() starts it again, with all that was stored")

    def give_history(self, seconds: float) -> None:
        """Nothing: this step has no data of its own."""

    def text(self) -> str:
        """The command of the terminal, and the processes that it starts."""
        lines = [f"{s.name:24} {s.state:10} {s.url or ''}" for s in self._target.status()]
        return "\n".join(["./run.sh", "./status.sh", *lines])

    def _fresh(self) -> str:
        with PrometheusReader(self._target.prometheus_url) as reader:
            ages = reader.latest("(time() - timestamp(up)) and (up == 1)", empty_ok=True).iloc[-1:]
        if ages.empty or not (ages <= FRESH_S).to_numpy().all():
            return ""
        count = ages.shape[1]
        return f"{count} exporter{'s' * (count > 1)} scraped, {ages.to_numpy().max():.1f} s ago"

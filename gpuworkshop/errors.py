"""Every error that this kit raises on purpose.

WorkshopError
├── SettingsError             a setting or a file of settings makes no sense
├── ToolError                 kubectl, helm, aws, prometheus …
│   ├── ToolMissing           no source had it; each one tried is named
│   ├── DownloadError         a download broke off or failed its checksum
│   └── UnsupportedPlatform   this operating system or processor has no such tool
├── ServiceError              a process that the workshop keeps running
│   ├── PortInUse
│   ├── StartTimeout          it did not become healthy in time
│   ├── ServiceDied           it ended by itself; its last log lines are quoted
│   └── DiskFull
├── ExporterError
│   ├── GpuFileError          the YAML list of GPUs is wrong; says where
│   ├── TraceError            a recorded trace cannot be read
│   ├── CountersError         a counters file is wrong; has the line
│   └── WebConfigError        the file about TLS and passwords is wrong
├── MetricsError
│   ├── ExpositionError       a metrics body that is no exposition text; has the line
│   ├── PrometheusError       the server said no; keeps status and answer
│   │   ├── PrometheusUnreachable
│   │   ├── QueryError        PromQL that Prometheus refuses, in its own words
│   │   └── BadAnswer         not JSON, or not what the API promises
│   ├── NoData                a query without results; has near names
│   ├── UnknownQuantity       no such name in the catalogue; has near names
│   └── NoWave                no on-off pattern in a series
├── LiveError                a live plot cannot be made as asked
├── CwAgentError              the CloudWatch agent's configuration, or its pipeline
│   ├── RelabelError          a relabel rule that Prometheus refuses, in its own words
│   ├── ScrapeConfigError     a Prometheus configuration that cannot be read; says where
│   └── AgentConfigError      the agent's JSON cannot be read; has the line
├── DeployError
│   ├── KubectlError          kubectl said no; its own words
│   ├── HelmError             the same of helm
│   └── ClusterConfigError    an eksctl ClusterConfig that makes no sense; says where
├── LabError
│   └── LabNotRunning
├── StepError
│   ├── UnknownStep           no step or notebook of that name
│   └── StepFailed            apply or verify did not reach what it should
└── RehearsalFailed           names notebook, cell and cause

An error says which step it was in, what was seen, and what to do next. In a notebook it is shown as
those sentences, without a traceback: see `_render_traceback_`, which IPython asks for.
"""

from __future__ import annotations

from typing import Any


class WorkshopError(Exception):
    """What was seen, in which step, and what to do next.

    `seen` is one plain sentence. `step` names what was being done; `todo` is what the learner can do
    now. `response` keeps the answer of the server or tool that caused it, when there was one.
    """

    def __init__(self, seen: str, *, step: str = "", todo: str = "", response: Any = None) -> None:
        super().__init__(seen)
        self.seen = seen
        self.step = step
        self.todo = todo
        self.response = response

    def __str__(self) -> str:
        text = f"{self.step}: {self.seen}" if self.step else self.seen
        return f"{text}\nWhat to do: {self.todo}" if self.todo else text

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]


class SettingsError(WorkshopError):
    """A setting, in `.env` or the environment, makes no sense."""


class ToolError(WorkshopError):
    """A command-line tool cannot be used."""


class ToolMissing(ToolError):
    """No source had the tool; the message names each one that was tried."""


class DownloadError(ToolError):
    """A download broke off, or its bytes are not the pinned ones."""


class UnsupportedPlatform(ToolError):
    """There is no such tool for this operating system or processor."""


class ServiceError(WorkshopError):
    """A process that the workshop keeps running is not as it should be."""


class PortInUse(ServiceError):
    """Somebody else listens where a service should."""


class StartTimeout(ServiceError):
    """A service did not become healthy in time; its last log lines are quoted."""


class ServiceDied(ServiceError):
    """A service ended by itself; its last log lines are quoted."""


class DiskFull(ServiceError):
    """Too little room on the disk to go on."""


class ExporterError(WorkshopError):
    """The exporter cannot do its work."""


class GpuFileError(ExporterError):
    """The YAML list that describes the GPUs is wrong; the message says where."""


class TraceError(ExporterError):
    """A recorded trace cannot be read."""


class CountersError(ExporterError):
    """A counters file, which says what to export, is wrong; the message names the line."""


class WebConfigError(ExporterError):
    """The file that says how to serve, with TLS and passwords, is wrong."""


class MetricsError(WorkshopError):
    """Metrics cannot be read or understood."""


class ExpositionError(MetricsError):
    """A metrics body that is no exposition text. `line` counts from 1."""

    def __init__(self, seen: str, *, line: int = 0, **about: Any) -> None:
        super().__init__(seen, **about)
        self.line = line


class PrometheusError(MetricsError):
    """A Prometheus server did not give what was asked; `status` is the HTTP status, 0 without one."""

    def __init__(self, seen: str, *, status: int = 0, **about: Any) -> None:
        super().__init__(seen, **about)
        self.status = status


class PrometheusUnreachable(PrometheusError):
    """Nothing answers at the server's address."""


class QueryError(PrometheusError):
    """Prometheus refuses the query; its own message is quoted."""


class BadAnswer(PrometheusError):
    """The answer is not JSON, or not what the HTTP API promises."""


class NoData(MetricsError):
    """A query without results. `near` lists metric names that look alike."""

    def __init__(self, seen: str, *, near: tuple[str, ...] = (), **about: Any) -> None:
        super().__init__(seen, **about)
        self.near = near


class UnknownQuantity(MetricsError):
    """The catalogue has no such quantity. `near` lists names that look alike."""

    def __init__(self, seen: str, *, near: tuple[str, ...] = (), **about: Any) -> None:
        super().__init__(seen, **about)
        self.near = near


class NoWave(MetricsError):
    """No on-off pattern can be measured in this series."""


class LiveError(WorkshopError):
    """A live plot cannot be made as it was asked for."""


class CwAgentError(WorkshopError):
    """The CloudWatch agent's configuration makes no sense, or its pipeline cannot go on."""


class RelabelError(CwAgentError):
    """A relabel rule that Prometheus refuses; `seen` has Prometheus's own words.

    `path` is where the rule stands in its job, such as `("relabel_configs", 2)`, () if that is not known.
    """

    def __init__(self, seen: str, *, path: tuple[str | int, ...] = (), **about: Any) -> None:
        super().__init__(seen, **about)
        self.path = path


class ScrapeConfigError(CwAgentError):
    """A Prometheus configuration that cannot be read. `line` counts from 1, 0 if it is not known."""

    def __init__(self, seen: str, *, line: int = 0, **about: Any) -> None:
        super().__init__(seen, **about)
        self.line = line


class AgentConfigError(CwAgentError):
    """The agent's JSON configuration cannot be read. `line` counts from 1, 0 if it is not known."""

    def __init__(self, seen: str, *, line: int = 0, **about: Any) -> None:
        super().__init__(seen, **about)
        self.line = line


class DeployError(WorkshopError):
    """Something cannot be put on the cluster."""


class KubectlError(DeployError):
    """kubectl failed; `seen` has its own words."""


class HelmError(DeployError):
    """helm failed; `seen` has its own words."""


class ClusterConfigError(DeployError):
    """An eksctl ClusterConfig that cannot be read, or asks for what there is not."""


class LabError(WorkshopError):
    """The rehearsal lab cannot do its work."""


class LabNotRunning(LabError):
    """The rehearsal lab is not up."""


class StepError(WorkshopError):
    """A step of the workshop cannot go on."""


class UnknownStep(StepError):
    """There is no step or notebook of that name."""


class StepFailed(StepError):
    """A step did not bring about, or could not prove, what it should."""


class RehearsalFailed(WorkshopError):
    """At least one notebook did not run; the message names notebook, cell and cause."""

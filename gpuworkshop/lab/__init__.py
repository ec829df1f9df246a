"""The rehearsal stage: simulated GPU nodes, and the real Prometheus that scrapes them.

`simulation` is what runs on which simulated GPU, kept in one YAML file a node; `prometheus` is the
real server's configuration and its back-filled history; `services` lists the processes to supervise;
`stage` is the lab as the rest of the kit sees it. The exporter is started by its command line, as on a
real node.
"""

from gpuworkshop.lab.services import build
from gpuworkshop.lab.simulation import Pod, PodOnGpu
from gpuworkshop.lab.stage import GROUP, Lab

__all__ = ["GROUP", "Lab", "Pod", "PodOnGpu", "build"]

"""The CloudWatch agent's Prometheus pipeline, and what it does to your series, told before it happens.

`relabel` and the jobs of `scrape_config` are Prometheus's half; `agent_config`, `pipeline` and `emf` the
agent's. `explain` follows every target and series through both and says what becomes of it, and why.
"""

from gpuworkshop.cwagent.explanation import Explanation, explain
from gpuworkshop.cwagent.relabelling import relabel

__all__ = ["Explanation", "explain", "relabel"]

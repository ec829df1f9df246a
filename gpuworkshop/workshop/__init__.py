"""The workshop itself: steps and verdicts, catching up, the learner's notebooks, the rehearsal.

`session` has `Workshop`, which every notebook opens; `lessons` the ordered notebooks and what each
needs; `steps` what a step is, and `lab_steps`, `pod_steps` the steps there are.
"""

from gpuworkshop.workshop.session import Workshop
from gpuworkshop.workshop.steps import Step
from gpuworkshop.workshop.verdict import Verdict

__all__ = ["Step", "Verdict", "Workshop"]

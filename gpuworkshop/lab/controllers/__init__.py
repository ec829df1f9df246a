"""The controllers of the rehearsal cluster: what a real one's controller manager and scheduler do.

Each is a `Controller` that the loop runs; each looks at the registry as it is, and writes through it.
"""

from __future__ import annotations

from gpuworkshop.lab.api.account_tokens import LONGEST_S, Tokens
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.controllers.accounts import AccountController, TokenController
from gpuworkshop.lab.controllers.custom_resources import CustomResourceController
from gpuworkshop.lab.controllers.daemonsets import DaemonSetController
from gpuworkshop.lab.controllers.deployments import DeploymentController
from gpuworkshop.lab.controllers.disruptions import DisruptionController
from gpuworkshop.lab.controllers.endpoints import EndpointsController, EndpointSliceController
from gpuworkshop.lab.controllers.garbage import GarbageCollector
from gpuworkshop.lab.controllers.jobs import JobController
from gpuworkshop.lab.controllers.loop import Controller
from gpuworkshop.lab.controllers.namespaces import NamespaceController
from gpuworkshop.lab.controllers.nodes import NodeController, PodGarbageController
from gpuworkshop.lab.controllers.quotas import QuotaController
from gpuworkshop.lab.controllers.replicasets import ReplicaSetController
from gpuworkshop.lab.controllers.scheduler import Scheduler
from gpuworkshop.lab.controllers.statefulsets import StatefulSetController
from gpuworkshop.lab.controllers.volume_claims import VolumeClaimController


def all_controllers(tokens: Tokens, ca: str) -> list[Controller]:
    """All of them, new; `ca` is the PEM of the API server's CA."""

    def lasting_token(account: Object) -> str:
        return tokens.issue(account, expiration_s=LONGEST_S)[0]

    return [
        NodeController(),
        Scheduler(),
        AccountController(ca),
        TokenController(lasting_token, ca),
        DeploymentController(),
        ReplicaSetController(),
        DaemonSetController(),
        StatefulSetController(),
        JobController(),
        EndpointsController(),
        EndpointSliceController(),
        DisruptionController(),
        QuotaController(),
        NamespaceController(),
        GarbageCollector(),
        PodGarbageController(),
        CustomResourceController(),
        VolumeClaimController(),
    ]


__all__ = ["all_controllers"]

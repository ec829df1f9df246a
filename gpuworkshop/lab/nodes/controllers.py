"""The controllers of nodes with GPUs: what a real cluster's operators and plugins do there."""

from __future__ import annotations

from gpuworkshop.lab.controllers.loop import Controller
from gpuworkshop.lab.nodes.cluster_policy import ClusterPolicyController
from gpuworkshop.lab.nodes.device_plugins import DevicePluginController
from gpuworkshop.lab.nodes.operator import GpuOperatorController


def node_controllers() -> list[Controller]:
    """All of them, new."""
    return [GpuOperatorController(), ClusterPolicyController(), DevicePluginController()]

"""The kubelet's pod-resources API, v1: which devices each container of a node holds.

It is served and asked for by gRPC over a unix socket, which only the node's own processes reach.
"""

# Where a real node has it, below /var/lib/kubelet/pod-resources.
SOCKET_NAME = "kubelet.sock"

from gpuworkshop.podresources.messages import *  # noqa
from gpuworkshop.podresources.server import handler, Lister  # noqa


def _call(channel, name):
    from gpuworkshop.podresources.messages import types, SERVICE

    a, b = types(name)
    return channel.unary_unary(
        f"/{SERVICE}/{name}", request_serializer=a.SerializeToString, response_deserializer=b.FromString
    )


class Client:  # interim
    def __init__(self, channel):
        self.list = _call(channel, "List")
        self.allocatable = _call(channel, "GetAllocatableResources")
        self.get = _call(channel, "Get")

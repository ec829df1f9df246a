"""The kubelet's pod-resources API, v1: which devices each container of a node holds.

It is served and asked for by gRPC over a unix socket, which only the node's own processes reach.
"""

# Where a real node has it, below /var/lib/kubelet/pod-resources.
SOCKET_NAME = "kubelet.sock"

"""The simulated nodes: what an eksctl ClusterConfig makes of them, and what a device plugin adds."""

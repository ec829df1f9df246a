"""The rehearsal stage: a simulated cluster for real clients, and the real Prometheus that scrapes it.

`cluster` is the one process of the control plane: `api` (objects and their server), `controllers` (with the
scheduler), `kubelet` (pods as local processes), `nodes` (what an eksctl ClusterConfig and a device plugin
make of a node). `prometheus` is the real server's configuration and its back-filled history; `services` lists
the processes to supervise; `stage` is the lab as the rest of the kit sees it. The exporter is started by its
command line, as on a real node.
"""

"""What is put on a cluster, and how: manifests, charts, cluster configurations, and runners for kubectl."""

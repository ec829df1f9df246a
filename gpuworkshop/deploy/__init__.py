"""What is put on a cluster, and how: manifests, charts, cluster configurations, runners of the clients."""

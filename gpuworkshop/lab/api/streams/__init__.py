"""The subresources that stay open: logs, commands, forwarded ports, and the proxy to pods and services."""

"""The machine's own GPUs, read by NVIDIA's management library (NVML)."""

"""`gpuworkshop exporter`: GPU metrics in DCGM's exposition, for simulated GPUs that replay a recorded trace.

The way of a value, each part a module that knows only its neighbours:

    gpus (the GPU file) ─▶ backends.replay ─▶ sampler ─▶ rendering ─▶ server ─▶ /metrics
                            ▲ trace, models    snapshot   ▲ schema     history ─▶ OpenMetrics for back-filling

It imports no data frame library and no Kubernetes client, so it stays small.
"""

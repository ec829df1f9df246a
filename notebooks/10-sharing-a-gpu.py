# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 10 · Sharing a GPU
#
# **You will learn** how one GPU is offered to two pods, what NVIDIA's exporter then says of each, why that is no
# answer to "who uses my GPU?", and where the answer can be found.
#
# | | |
# |---|---|
# | Time | 15 minutes |
# | Cost | none in the lab; on AWS one g6.xlarge while it runs |
# | You need | nothing: the next cell catches you up |

# %%
from gpuworkshop import Workshop

ws = Workshop.open()
ws.catch_up("sharing-a-gpu")

# %% [markdown]
# ## A node with one GPU, offered twice
#
# A pod that serves a model now and then wastes a whole GPU. *Time-slicing* lets the device plugin offer each GPU
# several times. The pods on it take turns, a few milliseconds each, and each sees the whole memory: nothing stops
# one from taking it all. (MIG cuts a GPU into parts that are apart, memory too, but an L4 has no MIG.)
#
# The node group `sharing` has no node yet. The step gives it one, and lets the operator's device plugin take the
# place of eksctl's: it reads how often to offer a GPU from a ConfigMap, and the node's label says which part of it.

# %%
ws.step("time-slicing").show()

# %%
ws.step("time-slicing").apply()

# %%
gpus = r"get nodes -o 'custom-columns=NODE:.metadata.name,GPUS:.status.allocatable.nvidia\.com/gpu'"
ws.kubectl(gpus)
ws.kubectl(
    "get nodes -L nvidia.com/gpu.product -L nvidia.com/gpu.replicas -l eks.amazonaws.com/nodegroup=sharing"
)

# %% [markdown]
# ## Two pods
#
# `early` works for 20 s and rests for 20 s; `late` works for 15 s and rests for 15 s.

# %%
ws.step("two-pods").apply()

# %%
ws.kubectl("get pods -n sharing -o wide")

# %% [markdown]
# ## What NVIDIA's exporter says
#
# **Guess first:** will the two lines differ?

# %%
util = ws.live("DCGM_FI_DEV_GPU_UTIL{namespace='sharing'}", name="util", window_s=120)
util

# %%
await util.run_for(30)
util.snapshot()

# %% [markdown]
# They do not. `GPU_UTIL` is a figure of the *device*, and the exporter writes it once for each pod that holds the
# device. So does each other field: whoever adds up `DCGM_FI_DEV_POWER_USAGE` over the pods gets twice what the
# card draws. Read such a series as "the GPU on which this pod is", never as "what this pod does".
#
# ## What the driver knows
#
# The driver keeps a figure of each *process*. From a process's id one finds its cgroup, from the cgroup the pod:
#
# | step | who knows |
# |---|---|
# | which processes use the GPU, and how much memory each has | NVML |
# | for how much of the last second each ran kernels | NVML |
# | the process's cgroup, with the pod's UID and the container's id in it | the kernel, `/proc/PID/cgroup` |
# | the pod of that UID | the API server |
#
# The workshop's own exporter does that, and runs beside the operator's. It gives the shares names of their own, so
# that sums over DCGM's names stay as they are.

# %%
ws.step("pod-shares").show()

# %%
ws.step("pod-shares").apply()

# %%
ws.step("pod-shares").verify()

# %%
METRICS = "get --raw /api/v1/namespaces/gpu-metrics/services/gpuworkshop-exporter:9400/proxy/metrics"
ws.kubectl(METRICS, grep="pod_gpu_memory_used_bytes")

# %%
shares = ws.live("pod_gpu_sm_active_ratio{namespace='sharing'}", name="shares", window_s=120)
shares

# %%
await shares.run_for(45)
shares.snapshot()

# %% [markdown]
# Each pod's own rhythm is there again. Look at the seconds in which both are on: single readings jump, since the
# driver says which process ran *last*; a mean over some seconds tells more. That is why there is a counter too:
# seconds of work, whose `rate` is the mean over any window that you like.

# %%
ws.range("rate(pod_gpu_sm_active_seconds_total{namespace='sharing'}[10s])", last="45s", step="5s").round(2)

# %% [markdown]
# ## What it cannot tell
#
# - The figure is *time* in which a process had a kernel on the GPU, not how much of the GPU it filled.
# - With **MPS** the kernels of several pods run at the same time, inside one server process: their figures overlap.
# - On a **MIG** instance the driver has no figure of processes, but the instance is a pod's own, and has its fields.
# - What no pod explains is exported too, as *unattributed*: a process of the node itself, or one that ended.
#
# On Amazon EKS this exporter's image is yours to build and push (`containers/exporter`); all else in this notebook
# needs no image of ours.
#
# ## Clean up
#
# The node that you scaled up costs money on AWS. Give it back.

# %%
for name in ("pod-shares", "two-pods", "time-slicing"):
    print(ws.step(name).reset())

# %% [markdown]
# ## Check

# %%
for name in ("lab", "cluster", "device-plugin", "gpu-operator"):
    print(ws.step(name).verify())

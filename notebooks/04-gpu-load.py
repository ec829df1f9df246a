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
# # 04 · A load on a GPU
#
# **You will learn** how a pod gets a GPU, how to look at the GPU from inside the pod and at the exporter from
# outside, and how your own manifest shows up on the plot.
#
# | | |
# |---|---|
# | Time | 10 minutes |
# | Cost | none in the lab |
# | You need | nothing: the next cell catches you up |

# %%
from gpuworkshop import Workshop

ws = Workshop.open()
ws.catch_up("gpu-load")

# %% [markdown]
# ## gpu-burn
#
# A Deployment with one pod. The line that matters is the limit `nvidia.com/gpu: 1`: with it the pod gets a GPU of
# its own, and the exporter can name the pod. In the lab the annotation `gpuworkshop.io/load` says what the
# simulated GPU does for the pod; on a real cluster the script in the pod drives the GPU.

# %%
ws.step("gpu-burn").show()

# %%
ws.step("gpu-burn").apply()

# %%
ws.kubectl("get pods -l app.kubernetes.io/part-of=gpu-burn -o wide")
ws.kubectl("logs deployment/gpu-burn --tail=5")

# %% [markdown]
# ## From inside the pod
#
# `nvidia-smi` in the pod sees the pod's own GPU, and no other.

# %%
ws.kubectl("exec deployment/gpu-burn -- nvidia-smi")

# %% [markdown]
# ## From outside: the exporter's endpoint
#
# The exporter on each GPU node serves all metrics of its GPUs as text. The API server can pass the question on, so
# no port has to be forwarded. One line is one *sample*: a name, labels in braces, a value.

# %%
ws.kubectl(
    "get --raw /api/v1/namespaces/gpu-operator/services/nvidia-dcgm-exporter:9400/proxy/metrics",
    grep="GPU_UTIL",
)

# %% [markdown]
# The labels `namespace`, `pod` and `container` are the *workload's*: the exporter asked the kubelet which pod holds
# which GPU. GPUs that nobody holds have a sample too, without a pod.
#
# ## Your own pod
#
# Any pod with a GPU limit shows on the plot. This one trains: bursts of work between pauses for its data.

# %%
MANIFEST = """
apiVersion: v1
kind: Pod
metadata:
  name: my-training
  annotations:
    gpuworkshop.io/load: training
spec:
  containers:
    - name: train
      image: python:3.12-slim
      command: [python, -c, "import signal; signal.pause()"]
      resources:
        limits:
          nvidia.com/gpu: 1
"""
ws.kubectl("apply -f -", stdin=MANIFEST)
ws.kubectl("wait pod/my-training --for=condition=Ready --timeout=30s")

# %%
live = ws.live("gpu utilisation", matchers='namespace="default",pod!=""', name="mine", window_s=120)
live

# %%
await live.run_for(15)
live.snapshot()

# %% [markdown]
# ## More GPUs than there are
#
# **Guess first:** what does Kubernetes do with a pod that asks for 64 GPUs?

# %%
GREEDY = MANIFEST.replace("my-training", "greedy").replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 64")
ws.kubectl("apply -f -", stdin=GREEDY)
ws.kubectl("wait pod/greedy --for=condition=PodScheduled=false --timeout=20s")
ws.kubectl("get pod greedy")
ws.kubectl("get events --field-selector=involvedObject.name=greedy,reason=FailedScheduling")

# %% [markdown]
# It waits, for ever if need be, and says why. It never gets a part of what it asked for.

# %%
ws.kubectl("delete pod greedy my-training --ignore-not-found")

# %% [markdown]
# ## Check

# %%
for name in ("lab", "cluster", "gpu-burn"):
    print(ws.step(name).verify())

# %% [markdown]
# **Next:** `08-prometheus-live` measures the wave.

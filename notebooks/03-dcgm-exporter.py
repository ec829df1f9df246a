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
# # 03 · NVIDIA's exporter
#
# **You will learn** what the GPU Operator puts on a GPU node, how to read an exporter's endpoint line by line, and
# how to choose which of a GPU's fields are exported.
#
# | | |
# |---|---|
# | Time | 15 minutes |
# | Cost | none in the lab |
# | You need | nothing: the next cell catches you up |

# %%
from gpuworkshop import Workshop

ws = Workshop.open()
ws.catch_up("dcgm-exporter")

# %% [markdown]
# ## Who reads the GPUs now?
#
# So far one DaemonSet, `dcgm-exporter`, stood alone: the quickest way to a first wave. On a real cluster you will
# mostly meet the **GPU Operator**, which brings an exporter of its own, and much else.
#
# Two exporters must not read the same GPU. Each series would be there twice, every `sum()` would be double, and
# on a real GPU the profiling fields admit one client only. So the step removes the lonely one.

# %%
ws.kubectl("get daemonsets -A")

# %%
ws.step("gpu-operator").show()

# %% [markdown]
# Read the values: **driver** and **toolkit** are off, because Amazon's machine images bring both, and the **device
# plugin** is off, because eksctl has installed one. With two of them on a node the same GPUs would be offered
# twice. `helm upgrade --install` can be repeated; `helm install --generate-name`, which the walkthrough of 2023
# used, makes one more release each time.

# %%
ws.step("gpu-operator").apply()

# %% [markdown]
# ## What came with it

# %%
ws.helm("list -n gpu-operator")
ws.kubectl("get pods -n gpu-operator -o wide")
ws.kubectl("get clusterpolicy")

# %% [markdown]
# How does the operator know where to run all this? *Node Feature Discovery* looks at each machine and puts labels
# on its node; the operator's DaemonSets choose nodes by labels.

# %%
ws.kubectl(
    "get nodes -L feature.node.kubernetes.io/pci-10de.present -L nvidia.com/gpu.product -L nvidia.com/gpu.count"
)

# %% [markdown]
# `10de` is NVIDIA's number on the PCI bus.
#
# ## The endpoint, line by line
#
# An exporter is a small web server. Whoever asks for `/metrics` gets all of its metrics as text, which is called
# *exposition*. Prometheus asks again and again, and that is a *scrape*. We can ask as well, through the API server:

# %%
METRICS = "get --raw /api/v1/namespaces/gpu-operator/services/nvidia-dcgm-exporter:9400/proxy/metrics"
ws.kubectl(METRICS, grep="DCGM_FI_DEV_POWER_USAGE")

# %% [markdown]
# - `# HELP` and `# TYPE` say what the metric means, and that it is a **gauge** (it goes up and down) or a
#   **counter** (it only grows).
# - Each further line is a sample: the name, labels in braces, the value.
# - `gpu`, `UUID` and `modelName` say which GPU; `Hostname` or `hostname`, by the exporter's release, on which node.
# - `pod`, `namespace` and `container` are there when a pod holds the GPU. **An idle GPU has no such labels**; keep
#   that in mind for CloudWatch, where a set of dimensions with one missing is skipped without a word.
#
# **Guess first:** which of the metrics are counters, and why those?

# %%
ws.kubectl(METRICS, grep=" counter")

# %% [markdown]
# ## Choosing fields
#
# What is exported stands in a CSV file: the field, its Prometheus type, a help text. The GPU Operator takes it from
# a ConfigMap; the value `dcgmExporter.config.name` says which.

# %%
ws.kubectl("get configmap dcgm-metrics -n gpu-operator -o 'jsonpath={.data.dcgm-metrics\\.csv}'")

# %% [markdown]
# Now write your own, shorter list, with a field that was not there before: *SM occupancy*, how full the GPU's
# processors are while they work.

# %%
COUNTERS = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: dcgm-metrics
  namespace: gpu-operator
data:
  dcgm-metrics.csv: |
    # field, Prometheus type, help
    DCGM_FI_DEV_GPU_UTIL, gauge, Share of the time in which a kernel ran (in %).
    DCGM_FI_DEV_FB_USED, gauge, Frame buffer memory used (in MiB).
    DCGM_FI_DEV_POWER_USAGE, gauge, Power draw (in W).
    DCGM_FI_PROF_SM_ACTIVE, gauge, Share of the cycles in which an SM had at least one warp.
    DCGM_FI_PROF_SM_OCCUPANCY, gauge, Share of the warps that the SMs could hold.
    DCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge, Share of the cycles in which the tensor pipe was active.
    DCGM_FI_DEV_ECC_DBE_VOL_TOTAL, counter, Memory errors that could not be corrected.
"""
ws.kubectl("apply --server-side --force-conflicts -f -", stdin=COUNTERS)
ws.kubectl("rollout restart daemonset/nvidia-dcgm-exporter -n gpu-operator")
ws.kubectl("rollout status daemonset/nvidia-dcgm-exporter -n gpu-operator --timeout=60s")

# %%
ws.kubectl(METRICS, grep="# TYPE DCGM")

# %% [markdown]
# Six of the seven. A field of the list that a GPU cannot give is missing without a word from NVIDIA's exporter.
# The workshop's own exporter, which stands in for it in the lab, says why:

# %%
ws.kubectl(METRICS, grep="gpuworkshop_field_unavailable")

# %% [markdown]
# **Misspell a field** in the cell above, run it again, and look at what the pods do: the exporter does not start
# with a list that it cannot read. `kubectl logs` names the line.
#
# Last, bring the workshop's list back, which the next notebooks plot.

# %%
ws.kubectl("delete configmap dcgm-metrics -n gpu-operator")
ws.step("gpu-operator").reset()
ws.step("gpu-operator").apply()

# %% [markdown]
# ## Check

# %%
for name in ("lab", "cluster", "device-plugin", "gpu-operator"):
    print(ws.step(name).verify())

# %% [markdown]
# **Next:** `04-gpu-load` puts a load on a GPU and looks at it from all sides.

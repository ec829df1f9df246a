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
# # 02 · A cluster with GPUs
#
# **You will learn** what a cluster configuration says, what a GPU node has that other nodes lack, and what makes
# `nvidia.com/gpu` appear on it.
#
# | | |
# |---|---|
# | Time | 10 minutes |
# | Cost | none in the lab |
# | You need | nothing: the next cells bring up what is missing |
#
# In the lab the cluster is **simulated**: its API server, scheduler and kubelets are the workshop's own, and each
# node says so in the label `gpuworkshop.io/simulated=true`. The `kubectl` that you use is the real one, and what
# you type here is what you will type on Amazon EKS.

# %%
from gpuworkshop import Workshop

ws = Workshop.open()
ws.step("lab").apply()

# %% [markdown]
# ## The configuration
#
# On EKS a tool called `eksctl` turns such a file into a cluster. The lab reads the very same file and makes
# simulated nodes of it. Each *managed node group* is a number of equal machines.

# %%
ws.step("cluster").show()

# %%
ws.step("cluster").apply()

# %% [markdown]
# ## The nodes
#
# `ws.kubectl(…)` prints the command and what it answers. In a terminal, `./exec.sh` opens a shell in which you can
# type the same commands.

# %%
ws.kubectl("get nodes -L node.kubernetes.io/instance-type -L eks.amazonaws.com/nodegroup")

# %% [markdown]
# Which of them have GPUs? The kubelet reports what a node has (*capacity*) and what pods may ask for
# (*allocatable*). A GPU is there under the name `nvidia.com/gpu`.

# %%
gpus = r"get nodes -o 'custom-columns=NODE:.metadata.name,GPUS:.status.allocatable.nvidia\.com/gpu'"
ws.kubectl(gpus)

# %% [markdown]
# ## What makes the GPUs appear
#
# The kubelet knows nothing of GPUs. A *device plugin* tells it: a pod on each GPU node, from a DaemonSet.
# eksctl installs it with the first GPU node group.

# %%
ws.kubectl("get daemonsets -n kube-system")

# %% [markdown]
# **Guess first:** what happens to the column GPUS when the device plugin's DaemonSet is deleted? And to a pod that
# asks for a GPU then?

# %%
ws.step("device-plugin").reset()

# %%
ws.kubectl(gpus)

# %%
WANTS_A_GPU = """
apiVersion: v1
kind: Pod
metadata:
  name: no-gpu
spec:
  containers:
    - name: main
      image: python:3.12-slim
      command: [python, -c, "import signal; signal.pause()"]
      resources:
        limits:
          nvidia.com/gpu: 1
"""
ws.kubectl("apply -f -", stdin=WANTS_A_GPU)
ws.kubectl("wait pod/no-gpu --for=condition=PodScheduled=false --timeout=20s")
ws.kubectl("get events --field-selector=involvedObject.name=no-gpu,reason=FailedScheduling")

# %% [markdown]
# The scheduler says for each node why the pod cannot go there. This sentence is worth knowing by heart: it is what
# you will see whenever GPUs are short. Pods that run already keep their GPUs.
#
# Now bring the plugin back. The waiting pod is scheduled at once.

# %%
ws.step("device-plugin").apply()

# %%
ws.kubectl("wait pod/no-gpu --for=condition=Ready --timeout=30s")
ws.kubectl("delete pod no-gpu")
ws.kubectl(gpus)

# %% [markdown]
# The GPU Operator brings a device plugin of its own. Two of them on one node would both
# offer the same GPUs, so one has to go. Now you know what its going means.
#
# ## A node group grows
#
# On EKS: `eksctl scale nodegroup`. In the lab, in a terminal:
#
# ```
# ./exec.sh gpuworkshop lab scale --nodegroup gpu --nodes 2
# ./exec.sh kubectl get nodes --watch
# ```
#
# ## Check

# %%
for name in ("lab", "cluster", "device-plugin"):
    print(ws.step(name).verify())

# %% [markdown]
# **Next:** `04-gpu-load` puts a load on a GPU and looks at it from all sides.

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
# # 00 · The first wave
#
# **You will learn** what "GPU utilisation 100 %" does and does not say, and you will see live GPU metrics
# **by pod** in this notebook.
#
# | | |
# |---|---|
# | Time | 5 minutes |
# | Cost | none: everything here runs on this machine |
# | You need | nothing: no account, no GPU, no Docker |
#
# The GPUs are simulated. They replay measurements taken on a real NVIDIA H200 under known loads; wherever
# a figure comes from them, it says so. The cluster that they are in is simulated too. What you use is the real thing:
# kubectl, an exporter that speaks DCGM's format, and a Prometheus that scrapes it once a second.
#
# ```
# GPU (replayed) ──▶ exporter /metrics ──▶ Prometheus ──▶ this notebook
# ```
#
# Run the cells from top to bottom with **Shift + Enter**. Any cell can be run twice.

# %%
from gpuworkshop import Workshop

ws = Workshop.open(target="lab")
ws

# %% [markdown]
# ## Is the lab up?
#
# Each step of this workshop has the same four verbs: `check()` looks at the world, `apply()` brings the step
# about, `verify()` proves it by data, and `reset()` undoes it. `show()` prints what is behind it.

# %%
ws.step("lab").apply()

# %%
ws.health()

# %% [markdown]
# ## Three pods, three GPUs
#
# Three teams share a node with eight GPUs. Each team has one pod, and each pod has one GPU.

# %%
ws.step("three-pods").apply()

# %%
ws.step("three-pods").verify()

# %% [markdown]
# The same four verbs as buttons, if you would rather click:

# %%
ws.panel("three-pods")

# %% [markdown]
# Here they are, live. The picture moves once a second. Hold it with **Pause**, and change how far back it
# looks with **Window**. Lines that would hide each other are drawn side by side. The shaded part is history that
# the lab made from the recording, so that you need not wait for it.

# %%
pods = 'namespace=~"language|vision|robotics"'
utilisation = ws.live("gpu utilisation", matchers=pods, name="utilisation")
utilisation

# %%
await utilisation.run_for(8)
utilisation.snapshot()

# %% [markdown]
# All three GPUs are at (almost) 100 %. Every team says: "We need more GPUs, ours is full."
#
# ## Guess first
#
# One of the three pods wastes its GPU: it could as well do without. Which one?

# %%
quiz = ws.quiz("wasted-gpu")
quiz

# %% [markdown]
# ## Now look inside
#
# `DCGM_FI_DEV_GPU_UTIL` is the share of time in which *any* kernel or copy ran, however small. Three other
# metrics tell what the GPU really did:
#
# - **power**: work costs energy;
# - **tensor activity**: how busy the matrix units were (1 would be a tensor instruction every other cycle);
# - **memory (DRAM) activity**: how busy the GPU's own memory was.

# %%
inside = ws.live(["power", "tensor activity", "dram activity"], matchers=pods, name="inside")
inside

# %%
await inside.run_for(8)
inside.snapshot()

# %% [markdown]
# The same as numbers, the mean over the last ten seconds:

# %%
ws.table(
    ["gpu utilisation", "power", "tensor activity", "dram activity", "pcie receive"],
    matchers=pods,
    over="10s",
)

# %% [markdown]
# | pod | what it really does |
# |---|---|
# | `language/tuner-0` | bf16 matrix products: tensor cores busy, power at the limit. **This GPU earns its keep.** |
# | `vision/detector-0` | copies inside the GPU's memory: DRAM busy, no arithmetic. Bound by memory bandwidth. |
# | `robotics/simulator-0` | copies over PCIe: **"100 % utilised"**, and everything else at rest. |

# %%
quiz.guess("robotics/simulator-0")

# %% [markdown]
# ## The wave
#
# Now a load that you will meet again and again in this workshop: `gpu-burn` keeps a GPU busy for 20 s, and
# lets it rest for 20 s.

# %%
ws.step("gpu-burn").apply()

# %%
wave = ws.live("gpu utilisation", matchers='pod=~"gpu-burn-.*"', name="wave", window_s=120)
wave

# %% [markdown]
# Watch the picture above for a minute: the wave comes in from the right. Meanwhile, the proof by data. It waits
# until the GPU was seen both busy and idle, for 20 s at most, and a still picture follows for the saved notebook.

# %%
ws.step("gpu-burn").verify()

# %%
wave.snapshot()

# %% [markdown]
# ## Check
#
# Everything that this notebook brought about, proved once more:

# %%
for name in ("lab", "three-pods", "gpu-burn"):
    print(ws.step(name).verify())

# %% [markdown]
# **Next:** `08-prometheus-live` asks Prometheus itself: queries, tables, and the wave measured.
# `ws.stop_live()` stops the pictures. To end the whole lab, type `./stop.sh` in a terminal.

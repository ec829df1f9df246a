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
# # 08 · Live from Prometheus
#
# **You will learn** how to ask Prometheus for a GPU metric by pod, how to get it as a table, how to watch it
# live, and how to measure a wave that you can see.
#
# | | |
# |---|---|
# | Time | 10 minutes |
# | Cost | none in the lab |
# | You need | nothing: the next cell catches you up |

# %%
from gpuworkshop import Workshop

ws = Workshop.open()
ws

# %% [markdown]
# `catch_up` brings the world to where this notebook starts, wherever you come from. From then on, a pod
# `gpu-burn-…` drives a GPU: 20 s on, 20 s off. So that nobody waits an hour for an hour's plot, the lab makes an
# hour of history for it from the recorded trace. It is marked: in the pictures by a shade, in the data by a series
# of its own, `gpuworkshop_backfilled_until_seconds`. Prometheus restarts for it, so this takes about ten seconds,
# and the pods that ran before show a gap of that length: nothing was scraped then, and nothing is drawn.

# %%
ws.catch_up("prometheus-live")

# %% [markdown]
# ## One query, one moment
#
# An *instant query* asks for the newest sample of each series. The answer is a table: a column a series,
# and the column's name says which pod and which GPU.

# %%
latest = ws.prometheus.latest("DCGM_FI_DEV_GPU_UTIL")
latest.T

# %% [markdown]
# The exporter knows from the kubelet which pod holds which GPU. The GPUs without a pod have an empty pod name.
#
# Names differ between releases of the exporter. Since 4.9 this metric is called `DCGM_FI_DEV_GPU_UTIL_RATIO`, and
# goes from 0 to 1. The catalogue knows all names and brings them to one unit:

# %%
quantity = ws.quantity("gpu utilisation")
print(f"{quantity.title}, in {quantity.unit}\n{quantity.meaning}\n\n{quantity.promql()}")

# %% [markdown]
# ## A query over time
#
# A *range query* evaluates the expression at every step between two times. Here: the last ten minutes of
# gpu-burn, a point a second.

# %%
history = ws.range('DCGM_FI_DEV_GPU_UTIL{pod=~"gpu-burn-.*"}', last="10m", step="1s")
print(f"{history.attrs['metric']}, in {history.attrs['unit']}; simulated: {history.attrs['simulated']}")
history.tail()

# %% [markdown]
# ## The wave, measured
#
# From the on and off edges: period, duty cycle (the share of time in which it is on), and how many whole
# cycles were seen.

# %%
measured = ws.waves(history)
measured

# %% [markdown]
# The load was told 20 s on and 20 s off: a period of 40 s, a duty cycle of 50 %. Does it agree?

# %%
ws.step("gpu-burn").compare(measured)

# %% [markdown]
# ### What a slow scrape would have shown
#
# By default many agents scrape once a minute. Take one sample in sixty from the very same data:

# %%
minutely = ws.range('DCGM_FI_DEV_GPU_UTIL{pod=~"gpu-burn-.*"}', last="50m", step="60s")
ws.waves(minutely)

# %% [markdown]
# A wave with three times the true period: this is *aliasing*. In a plot nothing would say that it is false; here
# the column `resolved` does, since there is but one sample in each phase. To see a load's wave you need at least four
# samples in each of its phases, so scrape every second or so.
#
# ## Live

# %%
live = ws.live("gpu utilisation", matchers='pod!=""', name="live", window_s=300)
live

# %%
await live.run_for(6)
live.snapshot()

# %% [markdown]
# Power follows the wave, with the GPU's own inertia. So do the clocks, in their own way: when nothing runs, the
# GPU is free to clock *up*, and it is the power limit that brings the clock down under load.

# %%
follow = ws.live(["power", "sm clock", "tensor activity"], matchers='pod=~"gpu-burn-.*"', name="follow")
follow

# %%
await follow.run_for(4)
follow.snapshot()

# %% [markdown]
# ## Check

# %%
for name in ("lab", "three-pods", "gpu-burn"):
    print(ws.step(name).verify())

# %% [markdown]
# **Try it:** change the matcher to your own pods, or the quantity to `"memory used"`, and run the live cell again:
# the view of the same name is replaced. `ws.stop_live()` stops the pictures.

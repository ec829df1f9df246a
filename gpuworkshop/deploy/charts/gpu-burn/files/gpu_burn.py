"""Keeps a GPU busy for some seconds and lets it rest for some, in turn: python gpu_burn.py ON OFF.

Python's standard library alone: it drives the GPU through the CUDA driver's library, which NVIDIA's container
runtime puts into each container that has a GPU. The load is products of half-precision matrices on the tensor
cores, from registers and into them: it keeps every multiprocessor busy, and does not reach memory. It needs a
GPU of the Turing generation or newer, such as a T4.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time

MULTIPLY = (
    "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
    "{{%x{n}, %y{n}, %z{n}, %w{n}}}, {{%a, %a}}, {{%b}}, {{%x{n}, %y{n}, %z{n}, %w{n}}};"
)
# Each warp multiplies 16 x 8 by 8 x 8 matrices of half precision into several sums, which do not wait for
# each other: more at once than a tensor core's pipeline is long.
SUMS = range(8)
KERNEL = f"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry burn(.param .u64 out, .param .u32 rounds)
{{
  .reg .pred %more;
  .reg .u32 %left, %thread;
  .reg .b32 %a, %b;
  .reg .u64 %address, %offset;
  .reg .f32 %x<{len(SUMS)}>, %y<{len(SUMS)}>, %z<{len(SUMS)}>, %w<{len(SUMS)}>;
  ld.param.u64 %address, [out];
  ld.param.u32 %left, [rounds];
  mov.u32 %thread, %tid.x;
  mov.u32 %a, 0x3c003c00;
  mov.u32 %b, 0x14001400;
  {" ".join(f"mov.f32 %{name}{n}, 0f00000000;" for n in SUMS for name in "xyzw")}
again:
  {" ".join(MULTIPLY.format(n=n) for n in SUMS)}
  sub.u32 %left, %left, 1;
  setp.ne.u32 %more, %left, 0;
  @%more bra again;
  {" ".join(f"add.f32 %x0, %x0, %x{n}; add.f32 %x0, %x0, %w{n};" for n in SUMS)}
  mul.wide.u32 %offset, %thread, 4;
  add.u64 %address, %address, %offset;
  st.global.f32 [%address], %x0;
  ret;
}}
\0""".encode("ascii")
THREADS = 512
BLOCKS_EACH = 2
MULTIPROCESSORS = 16  # cuDeviceGetAttribute's number for their count
BLOCKING = 4  # CU_CTX_SCHED_BLOCKING_SYNC: waiting does not spin on a CPU
LAUNCH_S = 0.05


class Gpu:
    """The first GPU of this container."""

    def __init__(self) -> None:
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError:
            sys.exit("no libcuda.so.1: does the pod have a limit on nvidia.com/gpu, and the node a driver?")
        device, self.context = ctypes.c_int(), ctypes.c_void_p()
        module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        self.out, count = ctypes.c_uint64(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxSetFlags", device, BLOCKING)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.call("cuCtxSetCurrent", self.context)
        self.call("cuModuleLoadData", ctypes.byref(module), KERNEL)
        self.call("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"burn")
        self.call("cuMemAlloc_v2", ctypes.byref(self.out), ctypes.c_size_t(4 * THREADS))
        self.call("cuDeviceGetAttribute", ctypes.byref(count), MULTIPROCESSORS, device)
        self.blocks = BLOCKS_EACH * count.value
        self.rounds = 100_000

    def call(self, name: str, *arguments: object) -> None:
        """Call the driver; its error ends the program."""
        code = getattr(self.cuda, name)(*arguments)
        if code:
            sys.exit(f"{name} failed with CUDA error {code}")

    def launch(self) -> None:
        """Run the kernel once; the next run is made about LAUNCH_S long."""
        rounds = ctypes.c_uint32(self.rounds)
        arguments = (ctypes.c_void_p * 2)(
            ctypes.cast(ctypes.byref(self.out), ctypes.c_void_p),
            ctypes.cast(ctypes.byref(rounds), ctypes.c_void_p),
        )
        begun = time.monotonic()
        self.call("cuLaunchKernel", self.kernel, self.blocks, 1, 1, THREADS, 1, 1, 0, None, arguments, None)
        self.call("cuCtxSynchronize")
        took = max(time.monotonic() - begun, 1e-4)
        self.rounds = max(1000, min(int(self.rounds * LAUNCH_S / took), 2**31))


class SimulatedGpu:
    """In the rehearsal lab there is no GPU: the node replays the load that the pod's annotation names."""

    def __init__(self, end: threading.Event) -> None:
        self.end = end

    def launch(self) -> None:
        """Take the time that a kernel would."""
        self.end.wait(LAUNCH_S)


def seconds(words: list[str]) -> tuple[float, float]:
    """How long to load, and how long to rest."""
    try:
        on, off = map(float, words or ["20", "20"])
    except ValueError:
        on, off = 0.0, 0.0
    if not (0 < on < float("inf") and 0 <= off < float("inf")):
        sys.exit("usage: gpu_burn.py ON OFF, both in seconds, such as 20 20")
    return on, off


def main() -> None:
    """Load and rest, on the absolute clock, until SIGTERM."""
    on, off = seconds(sys.argv[1:])
    end = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: end.set())
    simulated = os.environ.get("GPUWORKSHOP_SIMULATED_GPU") == "1"
    gpu: SimulatedGpu | Gpu = SimulatedGpu(end) if simulated else Gpu()
    print(f"{on:g} s on, {off:g} s off" + (" (simulated: no GPU is used)" if simulated else ""), flush=True)
    while not end.is_set():
        now = time.time()
        phase, clock = now % (on + off), time.strftime("%H:%M:%S", time.localtime(now))
        if phase < on:
            print(clock, "on", flush=True)
            until = time.monotonic() + on - phase
            while time.monotonic() < until and not end.is_set():
                gpu.launch()
        else:
            print(clock, "off", flush=True)
            end.wait(on + off - phase)


if __name__ == "__main__":
    main()

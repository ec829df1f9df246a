"""Work that a load counts itself, against what the exporter says of it: `python benchmarks/gpu_activity.py`.

Needs an NVIDIA GPU of Hopper or newer with its driver, and of packages only what the exporter needs. Two
loads run one after the other: bf16 products on the tensor cores, whose operations are counted, and copies
within the GPU's memory, whose bytes are counted. Beside them runs the exporter. Work counted and activity
have to agree within 5 % in the steady part:

    operations per second = tensor activity x SM cycles per second x multiprocessors x operations per cycle
    bytes per second      = DRAM activity x memory clock x 2 x bus width

SM cycles are counted by the kernel. The driver's SM clock is printed beside them: an H200 at its highest
load says 1,935 MHz and does 1,754 million cycles a second.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from nvml_known_loads import Exporter, exporter, parse

# m64n256k16 for a warpgroup of 128 threads, from zeroed shared memory: what is multiplied does not matter.
M, N, K = 64, 256, 16
ACCUMULATORS = N // 2  # of each thread: 64 x 256 / 128
INNER = 4  # products between two waits
PRODUCTS = f"""
.version 8.0
.target sm_90a
.address_size 64
.visible .entry products(.param .u64 out, .param .u32 rounds)
{{
  .reg .pred %more, %write, %adds;
  .reg .u32 %left, %thread, %base;
  .reg .u64 %address, %a, %b, %cycles, %begun, %nanoseconds, %then;
  .reg .f32 %d<{ACCUMULATORS}>, %sum;
  .shared .align 128 .b8 tile[16384];
  ld.param.u64 %address, [out];
  ld.param.u32 %left, [rounds];
  mov.u32 %thread, %tid.x;
  mov.u32 %base, tile;
  setp.eq.u32 %adds, %thread, %thread;
  {{
    .reg .u32 %at;
    .reg .pred %next;
    mul.lo.u32 %at, %thread, 4;
  clear:
    .reg .u32 %where;
    add.u32 %where, %base, %at;
    st.shared.u32 [%where], 0;
    add.u32 %at, %at, 512;
    setp.lt.u32 %next, %at, 16384;
    @%next bra clear;
  }}
  bar.sync 0;
  fence.proxy.async;
  shr.u32 %base, %base, 4;
  cvt.u64.u32 %a, %base;
  and.b64 %a, %a, 16383;
  or.b64 %a, %a, {(8 << 16) | (16 << 32)};
  mov.b64 %b, %a;
{chr(10).join(f"  mov.f32 %d{n}, 0f00000000;" for n in range(ACCUMULATORS))}
  mov.u64 %begun, %clock64;
  mov.u64 %then, %globaltimer;
again:
  wgmma.fence.sync.aligned;
{
    (
        f"  wgmma.mma_async.sync.aligned.m{M}n{N}k{K}.f32.bf16.bf16 "
        f"{{{', '.join(f'%d{n}' for n in range(ACCUMULATORS))}}}, %a, %b, %adds, 1, 1, 0, 0;" + chr(10)
    )
    * INNER
}
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  sub.u32 %left, %left, 1;
  setp.ne.u32 %more, %left, 0;
  @%more bra again;
  mov.u64 %cycles, %clock64;
  mov.u64 %nanoseconds, %globaltimer;
  sub.u64 %cycles, %cycles, %begun;
  sub.u64 %nanoseconds, %nanoseconds, %then;
  st.global.u64 [%address+8], %cycles;
  st.global.u64 [%address+16], %nanoseconds;
  mov.f32 %sum, 0f00000000;
{chr(10).join(f"  add.f32 %sum, %sum, %d{n};" for n in range(ACCUMULATORS))}
  setp.neu.f32 %write, %sum, 0f00000000;
  @%write st.global.f32 [%address], %sum;
  ret;
}}
"""
# Of one multiprocessor in one cycle: 989.4 TFLOP/s of an H100 or H200 at 1,830 MHz with 132 of them.
OPERATIONS_A_CYCLE = 4096
GROUP_THREADS, GROUPS_EACH = 128, 2
COPY_BYTES = 4 * 2**30
LAUNCH_S = 0.05
SETTLE_S, STEADY_S = 5.0, 20.0
TENSOR, DRAM = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE"
SM_CLOCK, MEMORY_CLOCK = "DCGM_FI_DEV_SM_CLOCK", "DCGM_FI_DEV_MEM_CLOCK"
USED, WHEN = "DCGM_FI_DEV_FB_USED", "gpuworkshop_sample_timestamp_seconds"
ALLOWED = 0.05


class Cuda:
    """The first GPU, by the driver's own library."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        device, context, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxSetFlags", device, 4)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.context = context
        self.call("cuCtxSetCurrent", context)
        self.call("cuDeviceGetAttribute", ctypes.byref(count), 16, device)
        self.multiprocessors = count.value
        self.call("cuDeviceGetAttribute", ctypes.byref(count), 37, device)
        self.bus_bits = count.value

    def call(self, name: str, *arguments: object) -> None:
        if code := getattr(self.library, name)(*arguments):
            sys.exit(f"{name} failed with CUDA error {code}")

    def memory(self, size: int) -> ctypes.c_uint64:
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def read(self, address: ctypes.c_uint64, count: int) -> list[int]:
        """`count` whole numbers of 64 bits."""
        numbers = (ctypes.c_uint64 * count)()
        self.call("cuMemcpyDtoH_v2", numbers, address, ctypes.c_size_t(8 * count))
        return list(numbers)

    def wait(self) -> None:
        self.call("cuCtxSynchronize")


class Products:
    """bf16 products; `step` runs about LAUNCH_S of them and returns the operations.

    `clocks` has the SM's cycles per second in each step, by its own counter.
    """

    def __init__(self, cuda: Cuda) -> None:
        self.cuda, self.rounds = cuda, 10_000
        module, self.kernel = ctypes.c_void_p(), ctypes.c_void_p()
        cuda.call("cuModuleLoadData", ctypes.byref(module), PRODUCTS.encode() + b"\0")
        cuda.call("cuModuleGetFunction", ctypes.byref(self.kernel), module, b"products")
        self.out = cuda.memory(4096)
        self.blocks = GROUPS_EACH * cuda.multiprocessors
        self.clocks: list[float] = []

    def step(self) -> float:
        rounds = ctypes.c_uint32(self.rounds)
        pointers = [ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (self.out, rounds)]
        arguments = (ctypes.c_void_p * 2)(*pointers)
        begun = time.monotonic()
        self.cuda.call(
            "cuLaunchKernel", self.kernel, self.blocks, 1, 1, GROUP_THREADS, 1, 1, 0, None, arguments, None
        )
        self.cuda.wait()
        done = 2.0 * M * N * K * INNER * self.blocks * self.rounds
        _, cycles, nanoseconds = self.cuda.read(self.out, 3)
        self.clocks.append(cycles / nanoseconds * 1e9)
        self.rounds = max(100, int(self.rounds * LAUNCH_S / max(time.monotonic() - begun, 1e-4)))
        return done


class Copies:
    """Copies within the GPU's memory; `step` returns the bytes read and written."""

    def __init__(self, cuda: Cuda) -> None:
        self.cuda = cuda
        self.source, self.target = cuda.memory(COPY_BYTES), cuda.memory(COPY_BYTES)

    def step(self) -> float:
        times = 16
        for _ in range(times):
            self.cuda.call(
                "cuMemcpyDtoDAsync_v2", self.target, self.source, ctypes.c_size_t(COPY_BYTES), None
            )
        self.cuda.wait()
        return 2.0 * COPY_BYTES * times


@dataclass(frozen=True)
class Steady:
    """Work per second, and the means of the exporter's samples, in the same time."""

    rate: float
    means: dict[str, float]


def steady(cuda: Cuda, running: Exporter, step: Callable[[], float]) -> Steady:
    """Work until it is steady, then count it and read the exporter at once."""
    done: list[tuple[float, float]] = []
    end = threading.Event()

    def work() -> None:
        cuda.call("cuCtxSetCurrent", cuda.context)
        while not end.is_set():
            amount = step()
            done.append((time.monotonic(), amount))

    worker = threading.Thread(target=work)
    worker.start()
    samples: dict[float, dict[tuple[str, str], float]] = {}
    time.sleep(SETTLE_S)
    begun = time.monotonic()
    while time.monotonic() < begun + STEADY_S:
        time.sleep(0.5)
        scrape = parse(running.text())
        samples[scrape[WHEN, ""]] = scrape
    finished = time.monotonic()
    end.set()
    worker.join()
    inside = [(at, amount) for at, amount in done if begun <= at <= finished]
    # The first of them began before the window.
    rate = sum(amount for _, amount in inside[1:]) / (inside[-1][0] - inside[0][0])
    # The oldest sample still holds a second of before.
    kept = [samples[at] for at in sorted(samples)][1:]
    names = (TENSOR, DRAM, SM_CLOCK, MEMORY_CLOCK)
    return Steady(rate, {name: statistics.fmean(each[name, "0"] for each in kept) for name in names})


def compared(what: str, counted: float, expected: float, seen: Steady) -> dict[str, object]:
    off = counted / expected - 1
    means = {key: round(value, 4) for key, value in seen.means.items()}
    return {"what": what, "counted": counted, "by activity": expected, "off": round(off, 4),
            "agrees": abs(off) <= ALLOWED, **means}  # fmt: skip


def used_mib(running: Exporter) -> float:
    """The frame buffer as the exporter has it, from a sample that is newer than now."""
    now = time.time()
    while (scrape := parse(running.text()))[WHEN, ""] <= now:
        time.sleep(0.1)
    return scrape[USED, "0"]


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with exporter() as running:
        cuda = Cuda()
        products = Products(cuda)
        multiplied = steady(cuda, running, products.step)
        clock = statistics.median(products.clocks)
        print(json.dumps({"what": "SM cycles per second, 1e6", "counted": round(clock / 1e6, 1),
                          "driver's clock": multiplied.means[SM_CLOCK]}))  # fmt: skip
        peak = clock * cuda.multiprocessors * OPERATIONS_A_CYCLE
        results = [compared("operations/s", multiplied.rate, multiplied.means[TENSOR] * peak, multiplied)]
        before = used_mib(running)
        copies = Copies(cuda)
        grown = used_mib(running) - before
        results.append({"what": "memory, MiB", "counted": 2 * COPY_BYTES / 2**20, "by activity": grown,
                        "agrees": grown == 2 * COPY_BYTES / 2**20})  # fmt: skip
        copied = steady(cuda, running, copies.step)
        peak = copied.means[MEMORY_CLOCK] * 1e6 * 2 * cuda.bus_bits / 8
        results.append(compared("bytes/s", copied.rate, copied.means[DRAM] * peak, copied))
    for result in results:
        print(json.dumps(result))
    if not all(result["agrees"] for result in results):
        sys.exit(1)


if __name__ == "__main__":
    main()

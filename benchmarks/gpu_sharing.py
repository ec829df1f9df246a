"""Two loads on one real GPU, and each one's share of it: `python benchmarks/gpu_sharing.py`.

Needs an NVIDIA GPU with its driver, and of packages only what the exporter needs. The kit's own load runs
twice on GPU 0, 20 s on and 20 s off, and 15 s on and 15 s off, on the absolute clock, for two minutes: each
pair of states comes about. Real are the GPU, the driver's figures and the exporter with --per-process. Made
up are the control groups of the two processes, and the API server that names the pods which they belong to.

Aims: a pod that has the GPU alone has 100 % of it, one at rest nothing, each within 5 points; while both are
on each has 50 % within 10 points; each pod's own on and off are found again; all seconds together, those of
no pod too, are those in which a load was on, within 5 %; memory is nvidia-smi's, to the MiB. Beside it stands
what each pod has by DCGM's field, which is the device's.

The driver takes 5 samples a second, and while two processes run, each sample names one of them: in 5 s there
are 25 draws, whose standard deviation is 10 points. So windows of 5 s are printed, and the mean is judged.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from nvml_known_loads import BURN, ENVIRONMENT, Exporter, exporter

SPAN_S = 120.0
SETTLED_S = 2.0  # samples of processes are up to a second late, and a mean over a second
START_S = 15.0
RATIO, SECONDS = "pod_gpu_sm_active_ratio", "pod_gpu_sm_active_seconds_total"
MEMORY, REST = "pod_gpu_memory_used_bytes", "gpu_unattributed_sm_active_seconds_total"
UTIL = "DCGM_FI_DEV_GPU_UTIL"
NEAR, TOTAL_NEAR, HALF_NEAR, RIGHT = 0.05, 0.05, 0.1, 0.95
WINDOW = 5  # samples, one a second


@dataclass
class Load:
    """A load, and the pod that it is said to be."""

    name: str
    on_s: float
    off_s: float
    uid: str
    container_id: str
    pid: int = 0

    def is_on(self, at: float) -> bool:
        return at % (self.on_s + self.off_s) < self.on_s

    def settled(self, at: float) -> bool:
        """Whether the last edge is some time ago, and the next one is not near."""
        return all(self.is_on(at + shift) == self.is_on(at) for shift in (-SETTLED_S, 0.5))


LOADS = (
    Load("slow", 20, 20, "11111111-1111-4111-8111-111111111111", "a" * 64),
    Load("quick", 15, 15, "22222222-2222-4222-8222-222222222222", "b" * 64),
)


def compute_apps() -> dict[int, float]:
    """The processes on the GPU by nvidia-smi, with their MiB."""
    query = ["nvidia-smi", "--id=0", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"]
    said = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    rows = [line.split(",") for line in said.splitlines() if "," in line]
    return {int(pid): float(memory) for pid, memory in rows}


@contextmanager
def running(load: Load) -> Iterator[None]:
    """Run it, and note its process id as the driver has it, which may be of another namespace than ours."""
    before = set(compute_apps())
    command = [sys.executable, str(BURN), f"{load.on_s:g}", f"{load.off_s:g}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=ENVIRONMENT) as process:
        try:
            deadline = time.monotonic() + START_S
            while not (new := set(compute_apps()) - before):
                if process.poll() is not None or time.monotonic() > deadline:
                    sys.exit("the load did not come to the GPU")
                time.sleep(0.2)
            (load.pid,) = new
            yield
            if process.poll() is not None:
                sys.exit(f"the load ended by itself, with code {process.returncode}")
        finally:
            process.terminate()


def write_proc(root: Path, loads: Sequence[Load]) -> None:
    """Control groups as containerd and systemd name them, for these processes."""
    for load in loads:
        folder = root / str(load.pid)
        folder.mkdir()
        uid = load.uid.replace("-", "_")
        group = f"/kubepods.slice/kubepods-pod{uid}.slice/cri-containerd-{load.container_id}.scope"
        (folder / "cgroup").write_text(f"0::{group}\n", "utf-8")
        (folder / "stat").write_text(f"{load.pid} (burn) S {'0 ' * 18}{load.pid} 0\n", "utf-8")


@contextmanager
def api_server(folder: Path, loads: Sequence[Load]) -> Iterator[Path]:
    """A kubeconfig of an API server that knows these pods, and of no change."""
    pods = [
        {
            "metadata": {"namespace": "default", "name": load.name, "uid": load.uid},
            "status": {
                "phase": "Running",
                "containerStatuses": [
                    {"name": "burn", "containerID": f"containerd://{load.container_id}"},
                ],
            },
        }
        for load in loads
    ]
    body = json.dumps({"kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": pods}).encode()
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            if "watch=true" in self.path:
                ended.wait(60)
            else:
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = folder / "kubeconfig"
    named = {"cluster": "c", "user": "u"}
    config = {
        "current-context": "x",
        "contexts": [{"name": "x", "context": named}],
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(json.dumps(config), "utf-8")  # JSON is YAML
    try:
        yield path
    finally:
        ended.set()
        server.shutdown()


Row = dict[tuple[str, str], float]


def by_pod(running_exporter: Exporter) -> Row:
    """Metric name and pod → value; "" for what has no pod."""
    found: Row = {}
    for line in running_exporter.text().splitlines():
        if not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            name, _, labels = series.partition("{")
            pod = labels.partition('pod="')[2].partition('"')[0]
            found[name, pod] = float(value)
    return found


def watch(running_exporter: Exporter, end: float) -> list[tuple[float, Row]]:
    """A scrape at each full second."""
    seen = []
    while time.time() < end:
        time.sleep(1 - time.time() % 1)
        row = by_pod(running_exporter)
        seen.append((row["gpuworkshop_sample_timestamp_seconds", ""], row))
    return seen


def means(seen: Sequence[tuple[float, Row]]) -> bool:
    """Print each pod's mean share in each pair of states; whether those that have to be right are."""
    good = True
    for states in ((True, False), (False, True), (True, True), (False, False)):
        rows = [
            row
            for at, row in seen
            if all(load.settled(at) for load in LOADS) and tuple(load.is_on(at) for load in LOADS) == states
        ]
        if not rows:
            print(f"{states}: no sample")
            continue
        shares = [
            statistics.fmean(row.get((RATIO, load.name), float("nan")) for row in rows) for load in LOADS
        ]
        device = statistics.fmean(row.get((UTIL, ""), float("nan")) for row in rows) / 100
        words = ", ".join(
            f"{load.name} {'on' if on else 'off'} {share:.3f}"
            for load, on, share in zip(LOADS, states, shares, strict=True)
        )
        print(f"{words}, together {sum(shares):.3f}; by DCGM's field each {device:.3f}; {len(rows)} samples")
        aims = (0.5, 0.5) if all(states) else tuple(map(float, states))
        near = HALF_NEAR if all(states) else NEAR
        good &= all(abs(share - aim) <= near for aim, share in zip(aims, shares, strict=True))
    return good


def windows_of_both(seen: Sequence[tuple[float, Row]]) -> None:
    """Print each pod's share in each window in which both loads were on."""
    both: list[list[Row]] = [[]]
    for at, row in seen:
        if all(load.is_on(at) and load.settled(at) for load in LOADS):
            both[-1].append(row)
        elif both[-1]:
            both.append([])
    windows = [run[n : n + WINDOW] for run in both for n in range(0, len(run) - WINDOW + 1, WINDOW)]
    shares = [[statistics.fmean(row[RATIO, load.name] for row in rows) for load in LOADS] for rows in windows]
    print(f"both on, windows of {WINDOW} s: {[tuple(round(each, 3) for each in pair) for pair in shares]}")


def patterns(seen: Sequence[tuple[float, Row]]) -> bool:
    """Print how often a pod's share tells whether its load was on."""
    good = True
    for load in LOADS:
        settled = [(at, row) for at, row in seen if all(each.settled(at) for each in LOADS)]
        right = sum((row.get((RATIO, load.name), 0.0) > HALF_NEAR) == load.is_on(at) for at, row in settled)
        print(f"{load.name}: on or off is right in {right} of {len(settled)} samples")
        good &= right >= RIGHT * len(settled)
    return good


def totals(seen: Sequence[tuple[float, Row]]) -> bool:
    """Print the seconds of all, against the time in which a load was on."""
    (begin, first), (end, last) = seen[0], seen[-1]
    steps = int((end - begin) * 100)
    on = sum(any(load.is_on(begin + n / 100) for load in LOADS) for n in range(steps)) / 100
    keys = [*((SECONDS, load.name) for load in LOADS), (REST, "")]
    grown = [last.get(key, 0.0) - first.get(key, 0.0) for key in keys]
    off = sum(grown) / on - 1
    names = [*(load.name for load in LOADS), "no pod"]
    words = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in zip(names, grown, strict=True))
    print(f"{words}; together {sum(grown):.1f} s of {on:.1f} s with a load on, off by {100 * off:.1f} %")
    return abs(off) <= TOTAL_NEAR


def memory(running_exporter: Exporter) -> bool:
    """Print each pod's memory, against nvidia-smi's."""
    said, row = compute_apps(), by_pod(running_exporter)
    pairs = [(row[MEMORY, load.name] / 2**20, said[load.pid]) for load in LOADS]
    print(f"memory, exporter and nvidia-smi, MiB: {pairs}")
    return all(ours == theirs for ours, theirs in pairs)


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for load in LOADS:
            stack.enter_context(running(load))
        (folder / "proc").mkdir()
        write_proc(folder / "proc", LOADS)
        config = stack.enter_context(api_server(folder, LOADS))
        options = ("--per-process", "--proc-root", str(folder / "proc"), "--kubeconfig", str(config))
        served = stack.enter_context(exporter(*options))
        time.sleep(3)
        seen = watch(served, time.time() + SPAN_S)
        windows_of_both(seen)
        good = [means(seen), patterns(seen), totals(seen), memory(served)]
        for (name, _), value in seen[-1][1].items():
            if name.startswith(("gpuworkshop_share", "gpuworkshop_pod_watch")):
                print(f"  {name} {value:g}")
        print(f"resident: {served.resident_mib():.1f} MiB")
    if not all(good):
        sys.exit(1)


if __name__ == "__main__":
    main()

"""Calls of NVML, with its errors as ours, counted by call and cause.

NVIDIA's own binding, nvidia-ml-py, does the calling; it is imported only when the machine's GPUs are read.
A cause is the name of NVML's error, in small letters: `not_supported`, `gpu_is_lost`. Functions are called
by name, so that a binding or a driver too old to have one answers `function_not_found` like any other error.
"""

from __future__ import annotations

import importlib
import threading
from collections import Counter
from typing import Any

from gpuworkshop.errors import ExporterError
from gpuworkshop.exporter.devices import Family

_PREFIX = "NVML_ERROR_"
_STEP = "starting the exporter"

MISSING_FUNCTION = "function_not_found"
# What a GPU answers for good: it is asked once, and no fault.
NEVER = frozenset(
    {"not_supported", MISSING_FUNCTION, "no_permission", "argument_version_mismatch", "deprecated"}
)
# With these the GPU or the driver is gone, until the library is initialised anew.
GONE = frozenset(
    {
        "gpu_is_lost",
        "gpu_not_found",
        "uninitialized",
        "reset_required",
        "driver_not_loaded",
        "lib_rm_version_mismatch",
    }
)

_TODO = {
    "library_not_found": "install the NVIDIA driver, or start the container with the NVIDIA runtime; "
    "--gpus FILE serves simulated GPUs",
    "driver_not_loaded": "load the driver (nvidia-smi must answer); --gpus FILE serves simulated GPUs",
    "lib_rm_version_mismatch": "the driver was updated: reboot, or load its new kernel module",
    "no_permission": "give this process access to /dev/nvidiactl and /dev/nvidia*",
}
_OTHERWISE = "see that nvidia-smi answers; --gpus FILE serves simulated GPUs"


class NvmlError(Exception):
    """A call of NVML that failed: its name, and the cause."""

    def __init__(self, call: str, cause: str) -> None:
        super().__init__(f"{call}: {cause}")
        self.call = call
        self.cause = cause


class Nvml:
    """The binding's functions. May be used by several threads; NVML itself may, too."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self._causes = {
            getattr(module, name): name.removeprefix(_PREFIX).lower()
            for name in dir(module)
            if name.startswith(_PREFIX)
        }
        self._errors: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()

    def call(self, name: str, *arguments: Any) -> Any:
        """Call the function; raises NvmlError. What a GPU does not have is no error to count."""
        try:
            return self.ask(name, *arguments)
        except NvmlError as error:
            if error.cause not in NEVER:
                self.count(error)
            raise

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call the function where a refusal is an answer: raises NvmlError, counts nothing."""
        function = getattr(self.module, name, None)
        if function is None:
            raise NvmlError(name, MISSING_FUNCTION)
        try:
            return function(*arguments)
        except self.module.NVMLError as error:
            raise NvmlError(name, self.cause(error.value)) from error

    def count(self, error: NvmlError) -> None:
        """Count an error of `ask` that turned out to be one."""
        with self._lock:
            self._errors[error.call, error.cause] += 1

    def cause(self, code: int) -> str:
        """The name of an error's number; "" is success."""
        return "" if code == self.module.NVML_SUCCESS else self._causes.get(code, f"error_{code}")

    def families(self) -> list[Family]:
        """The errors so far."""
        with self._lock:
            errors = dict(self._errors)
        samples = [
            ([("call", call), ("cause", cause)], float(count)) for (call, cause), count in errors.items()
        ]
        about = "Calls of NVML that failed, but for what a GPU does not have."
        return [Family("gpuworkshop_nvml_errors_total", "counter", about, samples)] if samples else []


def load() -> Nvml:
    """The binding, with NVML initialised. Raises ExporterError, which says what to do."""
    try:
        module = importlib.import_module("pynvml")
    except ImportError as error:
        raise ExporterError(
            "this machine's GPUs cannot be read without the package nvidia-ml-py",
            step=_STEP,
            todo="pip install 'gpuworkshop[exporter]', or name a file of simulated GPUs with --gpus",
        ) from error
    nvml = Nvml(module)
    try:
        nvml.call("nvmlInit")
    except NvmlError as error:
        raise unusable(error) from error
    return nvml


def unusable(error: NvmlError) -> ExporterError:
    """What to say if the GPUs cannot be read at the start."""
    return ExporterError(
        f"NVML cannot read this machine's GPUs: {error.call} says {error.cause.replace('_', ' ')}",
        step=_STEP,
        todo=_TODO.get(error.cause, _OTHERWISE),
        response=error,
    )


def no_gpu() -> ExporterError:
    """What to say if there is a driver and no GPU."""
    return ExporterError(
        "the NVIDIA driver knows no GPU on this machine",
        step=_STEP,
        todo="see what nvidia-smi lists, or name a file of simulated GPUs with --gpus",
    )

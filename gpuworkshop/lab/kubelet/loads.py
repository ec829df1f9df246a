"""The annotation by which any pod with a GPU says what it does there, in the exporter's words.

The exporter is started by its command line and never imported here, so the words stand here once more;
a test holds both lists together.
"""

from __future__ import annotations

from typing import Any

import yaml

ANNOTATION = "gpuworkshop.io/load"
KINDS = ("idle", "matmul", "wave", "training", "memory-bound", "pcie-bound", "fp32")
SHORTEST_S, LONGEST_S = 0.5, 86_400.0
IDLE: dict[str, Any] = {"kind": "idle"}


def parse_load(text: str) -> dict[str, Any]:
    """The load that an annotation names: a word, or a YAML mapping such as `{kind: wave, on: 20, off: 20}`.

    Raises ValueError with a sentence that says what to write instead.
    """
    try:
        found = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(f"{text!r} is not YAML; {_expected()}") from error
    # A bare on or off is a truth value to YAML 1.1.
    load = {"kind": found} if isinstance(found, str) else _words(found)
    if load.get("kind") not in KINDS:
        raise ValueError(f"{text!r} is no load; {_expected()}")
    _check_wave(load, text)
    return load


def _words(found: object) -> dict[str, Any]:
    if not isinstance(found, dict):
        return {}
    return {{True: "on", False: "off"}.get(key, str(key)): value for key, value in found.items()}


def _check_wave(load: dict[str, Any], text: str) -> None:
    times = {key: value for key, value in load.items() if key != "kind"}
    if set(times) - {"on", "off"} or (times and load["kind"] != "wave"):
        raise ValueError(f"{text!r} has more than its kind takes: only a wave has seconds on and off")
    for key, value in times.items():
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not SHORTEST_S <= value <= LONGEST_S
        ):
            raise ValueError(
                f"{key} of {text!r} is no number of seconds from {SHORTEST_S:g} to {LONGEST_S:g}"
            )


def _expected() -> str:
    return f"write one of {', '.join(KINDS)}, or {{kind: wave, on: 20, off: 20}}"

"""Programs that the tests of supervision start: a supervisor, and services that behave in known ways.

`supervised.py supervise GROUP SERVICES.json` supervises what the file lists, at a pace for tests;
`supervised.py serve PORT [stubborn] [family] [JOURNAL]` and `supervised.py fail` are services.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PACE = {
    "check_starting": 0.02,
    "check_healthy": 0.05,
    "answer_within": 0.5,
    "unhealthy_after": 2,
    "restart_after": 4,
    "back_off": 0.05,
    "grace": 0.5,
}


def supervise(group: str, listing: str) -> None:
    from gpuworkshop import settings
    from gpuworkshop.errors import WorkshopError
    from gpuworkshop.processes.keeper import Pace
    from gpuworkshop.processes.supervisor import Service
    from gpuworkshop.processes.supervisor import supervise as run

    def build() -> list[Service]:
        return [Service(**service) for service in json.loads(Path(listing).read_text())]

    try:
        run(group, build, settings.load(), Pace(**PACE))  # type: ignore[arg-type]
    except WorkshopError as error:
        sys.exit(str(error))


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(500 if self.path == "/broken" else 200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def serve(port: str, *manners: str) -> None:
    def leave(*_: object) -> None:
        if manners:
            with Path(manners[-1]).open("a") as journal:
                journal.write(f"{port}\n")
        sys.exit(0)

    signal.signal(signal.SIGTERM, signal.SIG_IGN if "stubborn" in manners else leave)
    if "family" in manners:
        subprocess.Popen(["sleep", "600"], start_new_session=True)
    print("serving", flush=True)
    ThreadingHTTPServer(("127.0.0.1", int(port)), Answer).serve_forever()


def fail(*words: str) -> None:
    sys.exit(" ".join(words))


if __name__ == "__main__":
    programs: dict[str, Callable[..., None]] = {"supervise": supervise, "serve": serve, "fail": fail}
    programs[sys.argv[1]](*sys.argv[2:])

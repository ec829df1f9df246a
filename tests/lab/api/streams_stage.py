"""A server with one pod, whose containers are processes of this machine, for real clients to stream from."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from aiohttp import web

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.runtime import Execution, LogOptions
from gpuworkshop.lab.api.streams import execution, logs, portforward, proxying

LIMIT_S = 60.0


def pod(*containers: str, **more: object) -> Object:
    """A pod that runs these containers."""
    state = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": "web", "namespace": "default", "uid": "1"},
        "spec": {"nodeName": "node-1", "containers": [{"name": name, "image": "x"} for name in containers]},
        "status": {
            "phase": "Running",
            "podIP": "127.0.0.1",
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [
                {"name": name, "ready": True, "restartCount": 0, "image": "x", "imageID": "", "state": state}
                for name in containers
            ],
        },
        **more,
    }


class LocalCommand:
    """A command of this machine."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        self.process, self.stdin, self.stdout = process, process.stdin, process.stdout
        self.stderr = process.stderr
        self.sizes: list[tuple[int, int]] = []
        self.killed = asyncio.Event()

    async def wait(self) -> int:
        code = await self.process.wait()
        return code if code >= 0 else 128 - code

    def resize(self, columns: int, rows: int) -> None:
        self.sizes.append((columns, rows))

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.killed.set()


@dataclass
class LocalRuntime:
    """The kubelets' double. `begun` holds the commands, newest last; `asked` what they were asked with."""

    begun: list[LocalCommand] = field(default_factory=list)
    asked: list[tuple[str, bool, bool]] = field(default_factory=list)
    options: list[LogOptions] = field(default_factory=list)
    log_closed: asyncio.Event = field(default_factory=asyncio.Event)
    pieces: Callable[[], AsyncIterator[bytes]] | None = None
    refusal: ApiError | None = None
    gate: asyncio.Event | None = None  # what a command waits for before it begins

    async def log(self, pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
        self.options.append(options)
        if self.refusal:
            raise self.refusal
        try:
            assert self.pieces is not None
            async for piece in self.pieces():
                yield piece
        finally:
            self.log_closed.set()

    async def execute(
        self, pod: Object, container: str, command: Sequence[str], *, stdin: bool, tty: bool
    ) -> Execution:
        if self.refusal:
            raise self.refusal
        self.asked.append((container, stdin, tty))
        if self.gate:
            await self.gate.wait()
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=pipe if stdin else asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=asyncio.subprocess.STDOUT if tty else pipe,
            start_new_session=True,
        )
        self.begun.append(LocalCommand(process))
        return self.begun[-1]

    async def attach(self, pod: Object, container: str, *, stdin: bool, tty: bool) -> Execution:
        return await self.execute(pod, container, ["sh", "-c", "echo at it; cat"], stdin=stdin, tty=tty)

    async def connect(self, pod: Object, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", port)


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@web.middleware
async def _as_status(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except ApiError as error:
        return web.json_response(error.status(), status=error.code)


@dataclass
class Stage:
    """The server, while it runs."""

    url: str
    runtime: LocalRuntime

    async def kubectl(self, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes, str]:
        """Run the real kubectl to its end: exit code, what it printed, and its errors."""
        process = await self.start(*arguments)
        out, errors = await asyncio.wait_for(process.communicate(stdin), LIMIT_S)
        return process.returncode or 0, out, errors.decode()

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        """Start the real kubectl."""
        program = shutil.which("kubectl")
        assert program is not None, "these tests need kubectl on the PATH"
        pipe = asyncio.subprocess.PIPE
        environment = {**os.environ, "KUBECONFIG": os.devnull, "HOME": "/nonexistent"}
        return await asyncio.create_subprocess_exec(
            program, "--server", self.url, *arguments, stdin=pipe, stdout=pipe, stderr=pipe, env=environment
        )

    @contextlib.asynccontextmanager
    async def forwarded(self, *ports: int) -> AsyncIterator[list[int]]:
        """kubectl port-forward of these ports of the pod: the local ports."""
        process = await self.start(
            "port-forward", "--address=127.0.0.1", "pod/web", *(f":{port}" for port in ports)
        )
        assert process.stdout is not None
        try:
            lines = [await asyncio.wait_for(process.stdout.readline(), LIMIT_S) for _ in ports]
            yield [int(line.split(b" -> ")[0].rsplit(b":", 1)[1]) for line in lines]
        finally:
            process.terminate()
            await process.communicate()


@contextlib.asynccontextmanager
async def stage(runtime: LocalRuntime | None = None, served: Object | None = None) -> AsyncIterator[Stage]:
    """A server of the pod's subresources, and of as much more as kubectl asks for."""
    runtime, served = runtime or LocalRuntime(), served or pod("main")
    app = web.Application(middlewares=[_as_status])
    root = "/api/v1/namespaces/default/pods/web"
    resource = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get"]}
    documents = {
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
        "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": [resource]},
        root: served,
    }

    async def document(request: web.Request) -> web.StreamResponse:
        return web.json_response(documents[request.path])

    async def subresource(request: web.Request) -> web.StreamResponse:
        match request.match_info["name"]:
            case "exec":
                return await execution.execute(request, runtime, served)
            case "attach":
                return await execution.attach(request, runtime, served)
            case "log":
                return await logs.log(request, runtime, served)
        return await portforward.port_forward(request, lambda port: runtime.connect(served, port))

    for path in documents:
        app.router.add_get(path, document)
    app.router.add_route("*", root + "/{name:exec|attach|log|portforward}", subresource)
    app.router.add_route("*", "/api/v1/namespaces/default/pods/{target}/proxy{rest:.*}", _proxy_to(served))
    async with listening(app) as port:
        yield Stage(f"http://127.0.0.1:{port}", runtime)


@contextlib.asynccontextmanager
async def listening(app: web.Application) -> AsyncIterator[int]:
    """The application on a free port, as the lab runs its own."""
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def serving(
    handle: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
) -> AsyncIterator[int]:
    """A plain server within the pod: its port."""
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handle(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks)


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send back all that comes, then the end."""
    while piece := await reader.read(1 << 16):
        writer.write(piece)
        await writer.drain()


async def free_port() -> int:
    """A port on which nothing listens."""
    async with serving(echo) as port:
        return port


def _proxy_to(served: Object) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        scheme, _, asked = proxying.parse_target(request.match_info["target"])
        host, port = proxying.resolve_pod(served, asked)
        # Without its slashes at the ends, as the server's own parser of paths gives it.
        return await proxying.proxy(request, host, port, request.match_info["rest"].strip("/"), scheme=scheme)

    return answer

"""An API server of a test's own, in the test's process: plain HTTP, no kubelets, a clock if one is given."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from aiohttp import web
from streams_stage import LocalRuntime

from gpuworkshop.lab.api import admission
from gpuworkshop.lab.api.authentication import Authenticator, Tokens, admin_token
from gpuworkshop.lab.api.rbac import Authorizer
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.server import ApiServer
from gpuworkshop.lab.api.store import Store
from gpuworkshop.lab.api.subresources import Subresources
from gpuworkshop.lab.beginnings import begin
from gpuworkshop.lab.controllers import disruptions

STEPS = (admission.pod_account, admission.pod_priority, admission.service_address)


@dataclass
class OwnServer:
    """The server, and its admin's HTTP session, in which an address is a path."""

    registry: Registry
    api: ApiServer
    runner: web.AppRunner
    session: aiohttp.ClientSession


def new_registry(clock: Callable[[], float] = time.time, path: str | Path = ":memory:") -> Registry:
    """The registry of a fresh cluster, with the admission that needs no controllers."""
    registry = Registry(Store(path), admission=STEPS, update_admission=STEPS[1:], clock=clock)
    begin(registry, "https://127.0.0.1:6443")
    return registry


@contextlib.asynccontextmanager
async def serving(folder: Path, registry: Registry | None = None) -> AsyncIterator[OwnServer]:
    """Serve until the block ends; keys are made in `folder`."""
    registry = registry or new_registry()
    token = admin_token(folder)
    tokens = Tokens(registry, folder, "https://tests")
    subresources = Subresources(registry, LocalRuntime(), tokens, disruptions.check_eviction)
    api = ApiServer(registry, Authenticator(tokens), Authorizer(registry), subresources, "v1.35.0")
    runner = web.AppRunner(api.app(), handler_cancellation=True, shutdown_timeout=1.0, access_log=None)
    await runner.setup()
    listener = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listener).start()
    headers = {"Authorization": f"Bearer {token}"}
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(base, headers=headers, connector=connector) as session:
        try:
            yield OwnServer(registry, api, runner, session)
        finally:
            api.close()
            await runner.cleanup()
            registry.store.close()

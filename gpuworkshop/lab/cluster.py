"""The rehearsal cluster: API server, controllers, scheduler and kubelets in one process.

It serves the API over TLS and, on a port of its own, plain HTTP: whether it is healthy, and the charts. Its
state is one SQLite file; whatever ends this process, the next one goes on from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from ssl import SSLContext

from aiohttp import web

from gpuworkshop import versions
from gpuworkshop.lab import charts
from gpuworkshop.lab.api import admission, certificates
from gpuworkshop.lab.api.authentication import Authenticator, Tokens
from gpuworkshop.lab.api.rbac import Authorizer
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.api.server import ApiServer
from gpuworkshop.lab.api.store import Store
from gpuworkshop.lab.api.subresources import Subresources
from gpuworkshop.lab.beginnings import begin
from gpuworkshop.lab.cluster_access import Access, folder
from gpuworkshop.lab.controllers import all_controllers, disruptions, limits, quotas
from gpuworkshop.lab.controllers.loop import run_controllers
from gpuworkshop.lab.kubelet.manager import Kubelets
from gpuworkshop.lab.nodes import instances
from gpuworkshop.lab.nodes.controllers import node_controllers
from gpuworkshop.processes.ports import Subnet
from gpuworkshop.settings import Settings

# Not an address: the port may change, and tokens are to outlive that.
ISSUER = "https://kubernetes.default.svc.cluster.local"

# In this order: limits fill in what priorities and quotas look at.
ADMISSION = (
    admission.pod_account,
    limits.admit_limits,
    admission.pod_priority,
    admission.service_address,
    quotas.check_quota,
)

UPDATE_ADMISSION = (admission.pod_priority, admission.service_address)


async def run(settings: Settings, access: Access, subnet: Subnet) -> None:
    """Serve until SIGTERM or SIGINT; every process that a pod ran is then gone."""
    kept = folder(settings)
    store = Store(kept.database)
    registry = Registry(store, admission=ADMISSION, update_admission=UPDATE_ADMISSION)
    pki = certificates.ensure(kept.secrets)
    tokens = Tokens(registry, kept.secrets, ISSUER)
    begin(registry, access.server)
    version = f"v{versions.kubernetes()}"
    kubelets = Kubelets(registry, settings, subnet, instances.find, tokens, version)
    controllers = [*all_controllers(tokens, pki.ca_pem), *node_controllers()]
    authorizer = Authorizer(registry)
    server = ApiServer(
        registry,
        Authenticator(tokens),
        authorizer,
        Subresources(registry, kubelets, tokens, disruptions.check_eviction),
        version,
    )
    stop, serving = _stop_event(), False
    async with contextlib.AsyncExitStack() as stack:
        await _listen(stack, server.app(), access.api_port, pki.server_context())
        await _listen(stack, charts.app(lambda: "" if serving else "it is starting"), access.charts_port)
        stack.push_async_callback(kubelets.stop)
        stack.callback(server.close)
        serving = True
        print(f"the cluster's API is served at {access.server}", flush=True)
        tasks = [
            asyncio.ensure_future(work)
            for work in (run_controllers(registry, controllers), kubelets.run(), stop.wait())
        ]
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        for task in done:
            task.result()
    store.close()


async def _listen(
    stack: contextlib.AsyncExitStack, app: web.Application, port: int, tls: SSLContext | None = None
) -> None:
    # A handler whose client has gone is cancelled, so that no watch and no exec outlives its reader.
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0, access_log=None)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls).start()


def _stop_event() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop

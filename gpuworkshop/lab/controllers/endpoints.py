"""Endpoints and EndpointSlices: where the pods of a Service are, and which of them are ready."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpuworkshop.lab.api.kinds import ENDPOINT_SLICE, ENDPOINTS, POD, SERVICE, Kind
from gpuworkshop.lab.api.object_selectors import contains
from gpuworkshop.lab.api.objects import (
    Object,
    is_deleted,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_reference,
    uid_of,
)
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.addresses import Port, endpoint, resolved_ports, subsets
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, own_key
from gpuworkshop.lab.controllers.pods import is_finished

SERVICE_NAME = "kubernetes.io/service-name"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
MANAGER = "endpointslice-controller.k8s.io"
HEADLESS = "service.kubernetes.io/headless"
LARGEST_SLICE = 100


def _services_of(registry: Registry, pod: Object) -> Iterable[Key]:
    labels = labels_of(pod)
    for service in index_of(registry).within(SERVICE, namespace_of(pod)):
        selector = service["spec"].get("selector")
        if selector and contains(labels, selector):
            yield namespace_of(service), name_of(service)


def _service_of(registry: Registry, endpoints: Object) -> Iterable[Key]:
    """The Service of that name, if it is there: Endpoints may be written before theirs."""
    if registry.find(SERVICE, namespace_of(endpoints), name_of(endpoints)) is not None:
        yield namespace_of(endpoints), name_of(endpoints)


def _service_of_slice(_: Registry, obj: Object) -> Iterable[Key]:
    if labels_of(obj).get(MANAGED_BY) == MANAGER:
        yield namespace_of(obj), labels_of(obj).get(SERVICE_NAME, "")


class _OfServices(Controller):
    """What Endpoints and EndpointSlices have in common: a Service with a selector, and its pods."""

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Write what the pods of the Service are now."""
        service = registry.find(SERVICE, *key)
        if service is None or is_deleted(service):
            self.forget(registry, key)
        elif service["spec"].get("selector") and service["spec"].get("type") != "ExternalName":
            self.write(registry, service, _pods(registry, service))
        return None

    def forget(self, registry: Registry, key: Key) -> None:
        """The Service is gone."""

    def write(self, registry: Registry, service: Object, pods: Sequence[Object]) -> None:
        """Write the objects of the Service."""
        raise NotImplementedError


class EndpointsController(_OfServices):
    """Writes each Service's Endpoints."""

    name = "endpoint-controller"
    watches: Mapping[Kind, Keys] = {SERVICE: own_key, POD: _services_of, ENDPOINTS: _service_of}

    def forget(self, registry: Registry, key: Key) -> None:
        """Endpoints have their Service's name, and no owner: they go with it."""
        registry.delete(ENDPOINTS, *key)

    def write(self, registry: Registry, service: Object, pods: Sequence[Object]) -> None:
        """One object, under the Service's name."""
        found = subsets(service, pods)
        labels = {**labels_of(service), **_headless(service)}
        live = registry.find(ENDPOINTS, namespace_of(service), name_of(service))
        if live is None:
            metadata = {"name": name_of(service), "namespace": namespace_of(service), "labels": labels}
            registry.create(ENDPOINTS, {"metadata": metadata, "subsets": found})
        elif (live.get("subsets") or []) != found or labels_of(live) != labels:

            def change(new: Object) -> None:
                new["subsets"] = found
                meta(new)["labels"] = labels

            registry.modify(ENDPOINTS, namespace_of(service), name_of(service), change)


class EndpointSliceController(_OfServices):
    """Writes each Service's EndpointSlices, of a hundred endpoints at most; they go with their owner."""

    name = "endpointslice-controller"
    watches: Mapping[Kind, Keys] = {SERVICE: own_key, POD: _services_of, ENDPOINT_SLICE: _service_of_slice}

    def write(self, registry: Registry, service: Object, pods: Sequence[Object]) -> None:
        """As many slices as are needed: a pod stays in its slice, and slices with room take more."""
        live = sorted(self._live(registry, service), key=name_of)
        kept = set()
        for ports, members in _by_ports(service, pods).items():
            written = [port.body(name_always=True) for port in ports]
            theirs = [found for found in live if (found.get("ports") or []) == written]
            for chunk, old in _allotted(members, theirs):
                body = _slice(registry, service, chunk, written)
                if old is None:
                    registry.create(ENDPOINT_SLICE, body)
                else:
                    kept.add(name_of(old))
                    self._replace(registry, old, body)
        for old in live:
            if name_of(old) not in kept:
                registry.delete(ENDPOINT_SLICE, namespace_of(old), name_of(old))

    def _live(self, registry: Registry, service: Object) -> list[Object]:
        return [
            found
            for found in index_of(registry).controlled(ENDPOINT_SLICE, service)
            if labels_of(found).get(MANAGED_BY) == MANAGER and not is_deleted(found)
        ]

    def _replace(self, registry: Registry, old: Object, body: Object) -> None:
        fields = ("endpoints", "ports", "addressType")
        same = all((old.get(field) or []) == body[field] for field in fields)
        if same and labels_of(old) == labels_of(body):
            return

        def change(new: Object) -> None:
            new.update({field: body[field] for field in fields})
            meta(new)["labels"] = labels_of(body)

        registry.modify(ENDPOINT_SLICE, namespace_of(old), name_of(old), change)


def _pods(registry: Registry, service: Object) -> list[Object]:
    """The pods of the Service that have an address and have not ended."""
    selector = service["spec"]["selector"]
    found = [
        pod
        for pod in index_of(registry).within(POD, namespace_of(service))
        if contains(labels_of(pod), selector)
        and (pod.get("status") or {}).get("podIP")
        and not is_finished(pod)
    ]
    return sorted(found, key=name_of)


def _by_ports(service: Object, pods: Sequence[Object]) -> dict[tuple[Port, ...], list[Object]]:
    groups: dict[tuple[Port, ...], list[Object]] = {}
    for pod in pods:
        groups.setdefault(resolved_ports(service, pod), []).append(pod)
    return groups or {(): []}


def _allotted(pods: Sequence[Object], slices: Sequence[Object]) -> list[tuple[list[Object], Object | None]]:
    """The pods of each slice that stays or comes; a Service without pods has one that is empty."""
    places = {
        (each.get("targetRef") or {}).get("uid"): index
        for index, found in enumerate(slices)
        for each in found.get("endpoints") or ()
    }
    chunks: list[list[Object]] = [[] for _ in slices]
    new: list[Object] = []
    for pod in pods:
        place = places.get(uid_of(pod))
        (new if place is None else chunks[place]).append(pod)
    for chunk in chunks:
        room = LARGEST_SLICE - len(chunk)
        chunk += new[:room]
        del new[:room]
    allotted: list[tuple[list[Object], Object | None]] = [
        (chunk, old) for chunk, old in zip(chunks, slices, strict=True) if chunk
    ]
    allotted += [(new[at : at + LARGEST_SLICE], None) for at in range(0, len(new), LARGEST_SLICE)]
    return allotted or [([], slices[0] if slices else None)]


def _slice(
    registry: Registry, service: Object, pods: Sequence[Object], ports: Sequence[Mapping[str, Any]]
) -> Object:
    labels = {**labels_of(service), **_headless(service)}
    labels |= {SERVICE_NAME: name_of(service), MANAGED_BY: MANAGER}
    return {
        "metadata": {
            "generateName": f"{name_of(service)}-",
            "namespace": namespace_of(service),
            "labels": labels,
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": [endpoint(registry, service, pod) for pod in pods],
        "ports": list(ports),
    }


def _headless(service: Object) -> dict[str, str]:
    return {HEADLESS: ""} if service["spec"].get("clusterIP") == "None" else {}

"""DaemonSets: one pod on every node that suits them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuworkshop.lab.api.kinds import CONTROLLER_REVISION, DAEMON_SET, NODE, POD, Kind
from gpuworkshop.lab.api.objects import (
    Object,
    controller_of,
    is_deleted,
    labels_of,
    meta,
    name_of,
    namespace_of,
    seconds_of,
)
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers import daemon_pods, history
from gpuworkshop.lab.controllers.claims import claim, claimants
from gpuworkshop.lab.controllers.conditions import counted, write_status
from gpuworkshop.lab.controllers.loop import Controller, Key, Keys, key_of_controller, own_key
from gpuworkshop.lab.controllers.pods import (
    create_pod,
    delete_pod,
    is_available,
    is_ready,
    phase_of,
    unavailable_for,
)
from gpuworkshop.lab.controllers.rollout import share

NEVER_SCHEDULED = "no node"


def _every_daemon_set(registry: Registry, _: Object) -> Iterable[Key]:
    for daemon_set in registry.list(DAEMON_SET):
        yield namespace_of(daemon_set), name_of(daemon_set)


def _pod_keys(registry: Registry, pod: Object) -> Iterable[Key]:
    if controller_of(pod) is None:
        return claimants(registry, DAEMON_SET, pod)
    return key_of_controller(DAEMON_SET)(registry, pod)


class DaemonSetController(Controller):
    """Keeps the pods of DaemonSets on their nodes."""

    name = "daemonset-controller"
    watches: Mapping[Kind, Keys] = {
        DAEMON_SET: own_key,
        POD: _pod_keys,
        NODE: _every_daemon_set,
        CONTROLLER_REVISION: key_of_controller(DAEMON_SET),
    }

    def reconcile(self, registry: Registry, key: Key) -> float | None:
        """Make and delete pods, go on with an update, and count."""
        owner = registry.find(DAEMON_SET, *key)
        if owner is None:
            return None
        revision = history.ensure_current(registry, owner) if not is_deleted(owner) else None
        if revision is not None:
            pods = claim(registry, POD, owner)
            look = _Look(registry, owner, history.hash_of(revision), _by_node(pods))
            look.place()
            look.update()
        pods = claim(registry, POD, owner)
        digest = history.hash_of(revision) if revision else ""
        look = _Look(registry, owner, digest, _by_node(pods))
        wait = look.count()
        if revision is not None:
            in_use = {f"{name_of(owner)}-{labels_of(pod).get(history.REVISION_LABEL)}" for pod in pods}
            history.prune(registry, owner, in_use | {name_of(revision)})
        return wait


def _by_node(pods: Iterable[Object]) -> Mapping[str, list[Object]]:
    found: defaultdict[str, list[Object]] = defaultdict(list)
    for pod in pods:
        found[daemon_pods.node_of(pod) or NEVER_SCHEDULED].append(pod)
    return found


@dataclass
class _Look:
    """One look at a DaemonSet: its pods by node, and the hash of its newest template."""

    registry: Registry
    owner: Object
    digest: str
    pods: Mapping[str, list[Object]]

    def __post_init__(self) -> None:
        self.minimum = int(self.owner["spec"].get("minReadySeconds") or 0)
        self.now = self.registry.now()
        self.nodes = self.registry.list(NODE)

    def place(self) -> None:
        """A pod for each node that should have one; none where it may not go on."""
        known = set()
        for node in self.nodes:
            known.add(name_of(node))
            here = self.pods.get(name_of(node), [])
            self._clear(here)
            should_run, may_stay = daemon_pods.fate(self.owner, node)
            if should_run and not here:
                pod = daemon_pods.new_daemon_pod(self.owner, name_of(node), self.digest)
                create_pod(self.registry, self.owner, pod, DaemonSetController.name)
            surplus = here if not may_stay else _oldest_last(here)[:-1]
            for pod in surplus:
                self._delete(pod)
        for name in self.pods.keys() - known:  # of nodes that are gone
            for pod in self.pods[name]:
                self._delete(pod)

    def _clear(self, pods: Iterable[Object]) -> None:
        """Delete the pods that have ended; a successor comes when they are gone."""
        for pod in pods:
            phase = phase_of(pod)
            if phase not in _VERB or is_deleted(pod):
                continue
            kind, verb = _VERB[phase]
            message = f"Found {phase.lower()} daemon pod {namespace_of(pod)}/{name_of(pod)} on node "
            message += f"{daemon_pods.node_of(pod)}, will try to {verb} it"
            self.registry.event(self.owner, kind, f"{phase}DaemonPod", message, DaemonSetController.name)
            self._delete(pod)

    def update(self) -> None:
        """Delete pods of an older template, as many as may be missing at a time."""
        strategy = self.owner["spec"].get("updateStrategy") or {}
        if strategy.get("type") == "OnDelete":
            return
        rolling = strategy.get("rollingUpdate") or {}
        wanted = [node for node in self.nodes if daemon_pods.fate(self.owner, node)[0]]
        # A surge would need two pods on a node for a while: the lab replaces one by one instead.
        most = max(
            share(rolling.get("maxUnavailable", 1), len(wanted), up=True),
            share(rolling.get("maxSurge", 0), len(wanted), up=True),
        )
        missing, old = 0, []
        for node in wanted:
            here = self.pods.get(name_of(node), [])
            available = any(self._is_available(pod) for pod in here)
            missing += not available
            for pod in here:
                if not is_deleted(pod) and labels_of(pod).get(history.REVISION_LABEL) != self.digest:
                    old.append((available, pod))
        for available, pod in sorted(old, key=lambda each: (each[0], name_of(each[1]))):
            if available:
                missing += 1
                if missing > most:
                    return
            self._delete(pod)

    def count(self) -> float | None:
        """Write the status; the seconds until the next ready pod becomes available."""
        wanted = scheduled = misplaced = ready = available = updated = 0
        for node in self.nodes:
            here = _oldest_last(self.pods.get(name_of(node), []))
            if not daemon_pods.fate(self.owner, node)[0]:
                misplaced += bool(here)
                continue
            wanted += 1
            if not here:
                continue
            first = here[-1]
            scheduled += 1
            ready += is_ready(first)
            available += self._is_available(first)
            updated += labels_of(first).get(history.REVISION_LABEL) == self.digest
        status: dict[str, Any] = {
            "currentNumberScheduled": scheduled,
            "desiredNumberScheduled": wanted,
            "numberMisscheduled": misplaced,
            "numberReady": ready,
            "observedGeneration": meta(self.owner)["generation"],
        }
        status |= counted(
            numberAvailable=available,
            numberUnavailable=wanted - available,
            updatedNumberScheduled=updated,
        )
        write_status(self.registry, DAEMON_SET, self.owner, status)
        every = (pod for here in self.pods.values() for pod in here)
        waits = (unavailable_for(pod, self.minimum, self.now) for pod in every)
        return min((wait for wait in waits if wait), default=None)

    def _is_available(self, pod: Object) -> bool:
        return not is_deleted(pod) and is_available(pod, self.minimum, self.now)

    def _delete(self, pod: Object) -> None:
        if not is_deleted(pod):
            delete_pod(self.registry, self.owner, pod, DaemonSetController.name)


_VERB = {"Failed": ("Warning", "kill"), "Succeeded": ("Normal", "delete")}


def _oldest_last(pods: Iterable[Object]) -> list[Object]:
    return sorted(pods, key=lambda pod: (-seconds_of(meta(pod)["creationTimestamp"]), name_of(pod)))

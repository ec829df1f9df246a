"""The ReplicaSets of a Deployment as its revisions: the one of today's template, and those before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuworkshop.lab.api.kinds import DEPLOYMENT, REPLICA_SET
from gpuworkshop.lab.api.objects import (
    Object,
    annotations_of,
    controlled_by,
    copy_of,
    is_deleted,
    meta,
    name_of,
    namespace_of,
    owner_reference,
)
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.templates import HASH_LABEL, normalised, template_hash

REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"
NOT_COPIED = ("kubectl.kubernetes.io/last-applied-configuration", REVISION, DESIRED, MOST)


def revision_of(obj: Object) -> int:
    """The revision's number, 0 if it has none."""
    try:
        return int(annotations_of(obj).get(REVISION, "0"))
    except ValueError:
        return 0


def oldest_first(replica_sets: Sequence[Object]) -> list[Object]:
    """In the order of their creation."""
    return sorted(replica_sets, key=lambda rs: (meta(rs)["creationTimestamp"], name_of(rs)))


def newest(deployment: Object, replica_sets: Sequence[Object]) -> Object | None:
    """The ReplicaSet of the Deployment's template."""
    template = normalised(deployment["spec"]["template"])
    for replica_set in oldest_first(replica_sets):
        if normalised(replica_set["spec"]["template"]) == template:
            return replica_set
    return None


def renumber(registry: Registry, deployment: Object, new: Object, old: Sequence[Object]) -> Object:
    """Give the newest ReplicaSet the number after all others, and the Deployment's annotations."""
    number = max(revision_of(new), 1, *(revision_of(replica_set) + 1 for replica_set in old))
    ready_after = int(deployment["spec"].get("minReadySeconds") or 0)

    def change(live: Object) -> None:
        meta(live).setdefault("annotations", {}).update({**_copied(deployment), REVISION: str(number)})
        if int(live["spec"].get("minReadySeconds") or 0) != ready_after:
            live["spec"]["minReadySeconds"] = ready_after

    changed = registry.modify(REPLICA_SET, namespace_of(new), name_of(new), change)
    record_revision(registry, deployment, number)
    return changed or new


def create(
    registry: Registry, deployment: Object, old: Sequence[Object], replicas: int, limits: Mapping[str, str]
) -> Object | None:
    """Create the ReplicaSet of the Deployment's template; None if its name was taken by another one."""
    spec, collisions = deployment["spec"], int((deployment.get("status") or {}).get("collisionCount") or 0)
    template = copy_of(spec["template"])
    digest = template_hash(template, collisions)
    number = max((revision_of(replica_set) for replica_set in old), default=0) + 1
    labels = template.setdefault("metadata", {}).setdefault("labels", {})
    labels[HASH_LABEL] = digest
    selector = copy_of(spec["selector"])
    selector.setdefault("matchLabels", {})[HASH_LABEL] = digest
    metadata = {
        "name": f"{name_of(deployment)}-{digest}",
        "namespace": namespace_of(deployment),
        "labels": dict(labels),
        "annotations": {**_copied(deployment), REVISION: str(number), **limits},
        "ownerReferences": [owner_reference(deployment)],
    }
    body = {"replicas": replicas, "selector": selector, "template": template}
    if spec.get("minReadySeconds"):
        body["minReadySeconds"] = spec["minReadySeconds"]
    try:
        created = registry.create(REPLICA_SET, {"metadata": metadata, "spec": body})
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        _count_collision(registry, deployment, str(metadata["name"]))
        return None
    record_revision(registry, deployment, number)
    return created


def record_revision(registry: Registry, deployment: Object, number: int) -> None:
    """Write the number of the newest revision on the Deployment."""

    def change(live: Object) -> None:
        meta(live).setdefault("annotations", {})[REVISION] = str(number)

    registry.modify(DEPLOYMENT, namespace_of(deployment), name_of(deployment), change)


def prune(registry: Registry, deployment: Object, old: Sequence[Object]) -> None:
    """Delete the oldest ReplicaSets beyond the history's limit, of those that are scaled to nothing."""
    limit = deployment["spec"].get("revisionHistoryLimit", 10)
    unused = [
        replica_set
        for replica_set in sorted(old, key=revision_of)
        if not replica_set["spec"].get("replicas")
        and not (replica_set.get("status") or {}).get("replicas")
        and not is_deleted(replica_set)
    ]
    for replica_set in unused[: max(0, len(old) - limit)]:
        registry.delete(REPLICA_SET, namespace_of(replica_set), name_of(replica_set))


def _copied(deployment: Object) -> dict[str, str]:
    return {key: value for key, value in annotations_of(deployment).items() if key not in NOT_COPIED}


def _count_collision(registry: Registry, deployment: Object, name: str) -> None:
    """Have the next hash differ, unless the name is taken by this Deployment's own, just created."""
    existing = registry.find(REPLICA_SET, namespace_of(deployment), name)
    if existing is not None and controlled_by(existing, deployment) and newest(deployment, [existing]):
        return

    def change(live: Object) -> None:
        status = live.setdefault("status", {})
        status["collisionCount"] = int(status.get("collisionCount") or 0) + 1

    registry.modify(DEPLOYMENT, namespace_of(deployment), name_of(deployment), change, "status")

"""ControllerRevisions: past templates of DaemonSets and StatefulSets, for `rollout undo` to go back to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gpuworkshop.lab.api.kinds import CONTROLLER_REVISION
from gpuworkshop.lab.api.objects import (
    Object,
    copy_of,
    labels_of,
    meta,
    name_of,
    namespace_of,
    owner_reference,
)
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.controllers.index import index_of
from gpuworkshop.lab.controllers.templates import normalised, template_hash

REVISION_LABEL = "controller-revision-hash"


def revisions(registry: Registry, owner: Object) -> list[Object]:
    """The revisions of a workload, the oldest first."""
    found = index_of(registry).controlled(CONTROLLER_REVISION, owner)
    return sorted(found, key=lambda revision: int(revision["revision"]))


def ensure_current(registry: Registry, owner: Object) -> Object:
    """The revision of today's template, with the highest number; made where there is none."""
    known = revisions(registry, owner)
    template = owner["spec"]["template"]
    number = max((int(revision["revision"]) for revision in known), default=0)
    for revision in known:
        if normalised(template_in(revision)) == normalised(template):
            return revision if revision["revision"] == number else _renumber(registry, revision, number + 1)
    for collisions in range(len(known) + 1):
        if created := _create(registry, owner, template, number + 1, collisions):
            return created
    raise ApiError(409, "AlreadyExists", f"no name is free for the next revision of {name_of(owner)}")


def template_in(revision: Object) -> dict[str, Any]:
    """The pod template that a revision keeps."""
    template: dict[str, Any] = copy_of(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return template


def hash_of(revision: Object) -> str:
    """What its pods carry in their label."""
    return labels_of(revision)[REVISION_LABEL]


def prune(registry: Registry, owner: Object, live: Collection[str]) -> None:
    """Delete the oldest revisions beyond the history's limit that are of no pod; `live` are names in use."""
    known = [revision for revision in revisions(registry, owner) if name_of(revision) not in live]
    limit = owner["spec"].get("revisionHistoryLimit", 10)
    for revision in known[: max(0, len(known) - limit)]:
        registry.delete(CONTROLLER_REVISION, namespace_of(revision), name_of(revision))


def _create(
    registry: Registry, owner: Object, template: Mapping[str, Any], number: int, collisions: int
) -> Object | None:
    digest = template_hash(template, collisions)
    labels = dict((template.get("metadata") or {}).get("labels") or {})
    metadata = {
        "name": f"{name_of(owner)}-{digest}",
        "namespace": namespace_of(owner),
        "labels": {**labels, REVISION_LABEL: digest, "controller.kubernetes.io/hash": digest},
        "ownerReferences": [owner_reference(owner)],
    }
    # "$patch" makes the undo, which applies this as a strategic merge patch, replace the template as a whole.
    data = {"spec": {"template": {**copy_of(dict(template)), "$patch": "replace"}}}
    try:
        return registry.create(CONTROLLER_REVISION, {"metadata": metadata, "data": data, "revision": number})
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        return None


def _renumber(registry: Registry, revision: Object, number: int) -> Object:
    def change(live: Object) -> None:
        live["revision"] = number

    changed = registry.modify(CONTROLLER_REVISION, meta(revision)["namespace"], name_of(revision), change)
    return changed or revision

"""RBAC: the API groups that a binding leaves out."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import fill, mappings, struct

RBAC = "rbac.authorization.k8s.io"


def binding(obj: Object) -> None:
    """A RoleBinding or ClusterRoleBinding."""
    fill(struct(obj, "roleRef"), apiGroup=RBAC)
    for subject in mappings(obj, "subjects"):
        if subject.get("kind") in ("User", "Group"):
            fill(subject, apiGroup=RBAC)

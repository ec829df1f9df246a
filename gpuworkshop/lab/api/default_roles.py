"""The roles and bindings that a fresh cluster has, as far as the lab has what they are about.

admin contains edit, and edit contains view, by aggregation: a chart that labels a ClusterRole accordingly
adds its own kinds to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuworkshop.lab.api.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.users import AUTHENTICATED, MASTERS, UNAUTHENTICATED

READ = ("get", "list", "watch")
WRITE = ("create", "delete", "deletecollection", "patch", "update")
RBAC = "rbac.authorization.k8s.io"
WORKLOADS = ("deployments", "replicasets", "statefulsets")
SCALES = tuple(f"{workload}/scale" for workload in WORKLOADS)
STREAMS = ("pods/attach", "pods/exec", "pods/portforward", "pods/proxy")
DISCOVERY = ("/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi", "/openapi/*", "/readyz")
VERSION = ("/version", "/version/")

Rules = list[dict[str, list[str]]]


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> dict[str, list[str]]:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


def _urls(paths: Sequence[str]) -> dict[str, list[str]]:
    return {"nonResourceURLs": list(paths), "verbs": ["get"]}


def _statuses(*resources: str) -> list[str]:
    return [name for resource in resources for name in (resource, f"{resource}/status")]


VIEW: Rules = [
    _rule("", ["configmaps", "endpoints", "pods", "serviceaccounts", "services", "services/status"], READ),
    _rule("", ["events", "limitranges", "namespaces/status", "pods/log", "pods/status"], READ),
    _rule("", [*_statuses("persistentvolumeclaims", "resourcequotas"), "namespaces"], READ),
    _rule("", [*_statuses("replicationcontrollers"), "replicationcontrollers/scale"], READ),
    _rule("discovery.k8s.io", ["endpointslices"], READ),
    _rule("apps", ["controllerrevisions", *_statuses("daemonsets", *WORKLOADS), *SCALES], READ),
    _rule("batch", _statuses("cronjobs", "jobs"), READ),
    _rule("networking.k8s.io", [*_statuses("ingresses"), "networkpolicies"], READ),
    _rule("policy", _statuses("poddisruptionbudgets"), READ),
]
EDIT: Rules = [
    _rule("", [*STREAMS, "secrets", "services/proxy"], READ),
    _rule("", ["serviceaccounts"], ["impersonate"]),
    _rule("", ["pods", *STREAMS], WRITE),
    _rule("", ["pods/eviction", "serviceaccounts/token"], ["create"]),
    _rule("", ["configmaps", "events", "secrets", "serviceaccounts", "services", "services/proxy"], WRITE),
    _rule("apps", ["daemonsets", *WORKLOADS, *SCALES], WRITE),
    _rule("", ["persistentvolumeclaims", "replicationcontrollers", "replicationcontrollers/scale"], WRITE),
    _rule("batch", ["cronjobs", "jobs"], WRITE),
    _rule("networking.k8s.io", ["ingresses", "networkpolicies"], WRITE),
    _rule("policy", ["poddisruptionbudgets"], WRITE),
    _rule("coordination.k8s.io", ["leases"], [*READ, *WRITE]),
]
ADMIN: Rules = [
    _rule("authorization.k8s.io", ["localsubjectaccessreviews"], ["create"]),
    _rule(RBAC, ["rolebindings", "roles"], [*READ, *WRITE]),
]
OTHERS: dict[str, Rules] = {
    "cluster-admin": [_rule("*", ["*"], ["*"]), {"nonResourceURLs": ["*"], "verbs": ["*"]}],
    "system:discovery": [_urls([*DISCOVERY, *VERSION])],
    "system:public-info-viewer": [_urls(["/healthz", "/livez", "/readyz", *VERSION])],
    "system:basic-user": [
        _rule("authorization.k8s.io", ["selfsubjectaccessreviews", "selfsubjectrulesreviews"], ["create"]),
        _rule("authentication.k8s.io", ["selfsubjectreviews"], ["create"]),
    ],
    "system:auth-delegator": [
        _rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        _rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ],
}
BOUND = {
    "cluster-admin": (MASTERS,),
    "system:discovery": (AUTHENTICATED,),
    "system:basic-user": (AUTHENTICATED,),
    "system:public-info-viewer": (AUTHENTICATED, UNAUTHENTICATED),
}


def default_roles() -> list[Object]:
    """The ClusterRoles and ClusterRoleBindings, to be created where they are missing."""
    own = {"view": VIEW, "edit": EDIT, "admin": ADMIN}
    parts = [_role(f"system:aggregate-to-{name}", rules, to=name) for name, rules in own.items()]
    whole = [
        _aggregated("view", [*VIEW], to="edit"),
        _aggregated("edit", [*EDIT, *VIEW], to="admin"),
        _aggregated("admin", [*ADMIN, *EDIT, *VIEW]),
    ]
    others = [_role(name, rules) for name, rules in OTHERS.items()]
    return [*parts, *whole, *others, *(_binding(name, groups) for name, groups in BOUND.items())]


def _role(name: str, rules: Rules, to: str = "") -> Object:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    if to:
        labels[f"{RBAC}/aggregate-to-{to}"] = "true"
    metadata = {
        "name": name,
        "labels": labels,
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
    return {
        "apiVersion": CLUSTER_ROLE.api_version,
        "kind": CLUSTER_ROLE.kind,
        "metadata": metadata,
        "rules": [{key: list(values) for key, values in rule.items()} for rule in rules],
    }


def _aggregated(name: str, rules: Rules, to: str = "") -> Object:
    """A role whose rules are those of all roles with its label; here with those of the default roles."""
    selector: dict[str, Any] = {"matchLabels": {f"{RBAC}/aggregate-to-{name}": "true"}}
    return {**_role(name, rules, to), "aggregationRule": {"clusterRoleSelectors": [selector]}}


def _binding(role: str, groups: Sequence[str]) -> Object:
    metadata = {**_role(role, [])["metadata"]}
    return {
        "apiVersion": CLUSTER_ROLE_BINDING.api_version,
        "kind": CLUSTER_ROLE_BINDING.kind,
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": CLUSTER_ROLE.kind, "name": role},
        "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group} for group in groups],
    }

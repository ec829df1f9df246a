"""RBAC: roles and their bindings."""

from __future__ import annotations

from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.shapes import Mapping, mapping, mappings, sequence, text
from gpuworkshop.lab.api.validation import formats
from gpuworkshop.lab.api.validation.findings import Findings
from gpuworkshop.lab.api.validation.selectors import label_selector

RBAC = "rbac.authorization.k8s.io"
SUBJECTS = ("ServiceAccount", "User", "Group")
NO_VERBS = "verbs must contain at least one value"
NO_GROUP = "resource rules must supply at least one api group"
NO_RESOURCE = "resource rules must supply at least one resource"
NAMESPACED = "namespaced rules cannot apply to non-resource URLs"
BOTH = "rules cannot apply to both regular resources and non-resource URLs"


def role(found: Findings, obj: Object) -> None:
    """A Role."""
    for index, rule in enumerate(mappings(obj, "rules")):
        _rule(found, rule, f"rules[{index}]", namespaced=True)


def cluster_role(found: Findings, obj: Object) -> None:
    """A ClusterRole; one that aggregates others selects them."""
    for index, rule in enumerate(mappings(obj, "rules")):
        _rule(found, rule, f"rules[{index}]", namespaced=False)
    if isinstance(aggregation := obj.get("aggregationRule"), dict):
        field = "aggregationRule.clusterRoleSelectors"
        if not sequence(aggregation, "clusterRoleSelectors"):
            words = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            found.required(field, words)
        for index, selector in enumerate(mappings(aggregation, "clusterRoleSelectors")):
            label_selector(found, selector, f"{field}[{index}]")


def _rule(found: Findings, rule: Mapping, field: str, *, namespaced: bool) -> None:
    if not sequence(rule, "verbs"):
        found.required(f"{field}.verbs", NO_VERBS)
    if paths := sequence(rule, "nonResourceURLs"):
        if namespaced:
            found.invalid(f"{field}.nonResourceURLs", paths, NAMESPACED)
        if any(sequence(rule, key) for key in ("apiGroups", "resources", "resourceNames")):
            found.invalid(f"{field}.nonResourceURLs", paths, BOTH)
        return
    if not sequence(rule, "apiGroups"):
        found.required(f"{field}.apiGroups", NO_GROUP)
    if not sequence(rule, "resources"):
        found.required(f"{field}.resources", NO_RESOURCE)


def role_binding(found: Findings, obj: Object) -> None:
    """A RoleBinding."""
    _binding(found, obj, ("Role", "ClusterRole"))


def cluster_role_binding(found: Findings, obj: Object) -> None:
    """A ClusterRoleBinding."""
    _binding(found, obj, ("ClusterRole",))


def _binding(found: Findings, obj: Object, kinds: tuple[str, ...]) -> None:
    reference = mapping(obj, "roleRef")
    if (group := text(reference, "apiGroup")) != RBAC:
        found.unsupported("roleRef.apiGroup", group, (RBAC,))
    if (kind := text(reference, "kind")) not in kinds:
        found.unsupported("roleRef.kind", kind, kinds)
    if name := text(reference, "name"):
        found.fault("roleRef.name", name, formats.path_segment(name))
    else:
        found.required("roleRef.name")
    for index, subject in enumerate(mappings(obj, "subjects")):
        _subject(found, subject, f"subjects[{index}]")


def _subject(found: Findings, subject: Mapping, field: str) -> None:
    if not (name := text(subject, "name")):
        found.required(f"{field}.name")
    kind, group = text(subject, "kind"), text(subject, "apiGroup")
    if kind not in SUBJECTS:
        found.unsupported(f"{field}.kind", kind, SUBJECTS)
        return
    expected = "" if kind == "ServiceAccount" else RBAC
    if group != expected:
        found.unsupported(f"{field}.apiGroup", group, (expected,))
    if kind == "ServiceAccount":
        if name:
            found.fault(f"{field}.name", name, formats.dns_subdomain(name))
        if not text(subject, "namespace"):
            found.required(f"{field}.namespace")


def binding_update(found: Findings, new: Object, old: Object) -> None:
    """What a binding grants stays; to whom may change."""
    found.unchanged("roleRef", new.get("roleRef"), old.get("roleRef"), "cannot change roleRef")

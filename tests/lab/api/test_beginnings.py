"""What a cluster begins with, and what an older one gets when it is started again."""

from __future__ import annotations

from own_api_server import new_registry

from gpuworkshop.lab.api.registry import Registry
from gpuworkshop.lab.beginnings import begin

SERVER = "https://127.0.0.1:6443"


def rules_of(registry: Registry, name: str) -> list[object]:
    kind = registry.kinds.of("rbac.authorization.k8s.io/v1", "ClusterRole")
    assert kind is not None
    role = registry.find(kind, "", name)
    assert role is not None
    return list(role["rules"])


def test_an_older_clusters_roles_get_the_rules_that_they_lack_and_keep_their_own() -> None:
    registry = new_registry()
    kind = registry.kinds.of("rbac.authorization.k8s.io/v1", "ClusterRole")
    assert kind is not None
    role = registry.find(kind, "", "view")
    assert role is not None
    whole = list(role["rules"])
    own = {"apiGroups": ["example.org"], "resources": ["things"], "verbs": ["get"]}
    registry.update(kind, {**role, "rules": [own, *whole[1:]]})
    begin(registry, SERVER)
    found = rules_of(registry, "view")
    assert own in found
    assert all(rule in found for rule in whole)


def test_beginning_twice_changes_no_role() -> None:
    registry = new_registry()
    before = rules_of(registry, "view")
    begin(registry, SERVER)
    assert rules_of(registry, "view") == before

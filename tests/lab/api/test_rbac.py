"""Who may do what: roles, bindings, groups, aggregation, and the words of a refusal."""

from __future__ import annotations

import pytest
from access_lab import (
    RBAC,
    AccessLab,
    account_subject,
    group_subject,
    person,
    user_subject,
)

from gpuworkshop.lab.api.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, POD, ROLE_BINDING, Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.rbac import default_roles
from gpuworkshop.lab.api.rbac_rules import rules_of
from gpuworkshop.lab.api.users import ADMIN, ANONYMOUS, account_user

ANN, BOB = person("ann"), person("bob", "team")
READ_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}


@pytest.fixture
def lab() -> AccessLab:
    return AccessLab()


def test_nobody_may_anything_at_first(lab: AccessLab) -> None:
    assert not lab.may(ANN, "list", "pods", "team-a")
    assert not lab.may(ANONYMOUS, "list", "pods")


def test_masters_pass_by_all_roles(lab: AccessLab) -> None:
    for kind in (CLUSTER_ROLE_BINDING, CLUSTER_ROLE):
        for obj in lab.registry.list(kind):
            lab.registry.delete(kind, "", obj["metadata"]["name"])
    assert lab.may(ADMIN, "delete", "nodes", name="n1")
    assert lab.authorizer.allowed_url(ADMIN, "get", "/anything")
    assert [rule.object() for rule in lab.authorizer.rules_for(ADMIN, "default")] == [
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]},
        {"verbs": ["*"], "nonResourceURLs": ["*"]},
    ]


def test_a_binding_counts_in_its_namespace(lab: AccessLab) -> None:
    lab.bind("view", user_subject("ann"), "team-a")
    assert lab.may(ANN, "list", "pods", "team-a")
    assert lab.may(ANN, "get", "pods/log", "team-a", "web")
    assert not lab.may(ANN, "list", "pods", "team-b")
    assert not lab.may(ANN, "list", "pods")
    assert not lab.may(ANN, "create", "pods", "team-a")
    assert not lab.may(ANN, "list", "secrets", "team-a")
    assert not lab.may(BOB, "list", "pods", "team-a")


def test_a_cluster_binding_counts_everywhere(lab: AccessLab) -> None:
    lab.bind("view", group_subject("team"))
    assert lab.may(BOB, "watch", "pods", "team-b")
    assert lab.may(BOB, "list", "deployments", group="apps")
    assert not lab.may(BOB, "list", "deployments", group="batch")
    assert not lab.may(ANN, "list", "pods")


def test_roles_of_a_namespace(lab: AccessLab) -> None:
    lab.role("reader", [READ_PODS], "team-a")
    lab.bind("reader", account_subject("robot", "team-a"), "team-a", "Role")
    robot = account_user("team-a", "robot")
    assert lab.may(robot, "list", "pods", "team-a")
    assert not lab.may(robot, "get", "pods/log", "team-a", "web")
    assert not lab.may(account_user("team-b", "robot"), "list", "pods", "team-a")


def test_all_service_accounts_of_a_namespace_are_a_group(lab: AccessLab) -> None:
    lab.bind("view", group_subject("system:serviceaccounts:team-b"), "team-a")
    assert lab.may(account_user("team-b", "any"), "list", "pods", "team-a")
    assert not lab.may(account_user("team-a", "any"), "list", "pods", "team-a")


def test_changes_count_at_once(lab: AccessLab) -> None:
    assert not lab.may(ANN, "list", "pods", "team-a")
    made = lab.bind("view", user_subject("ann"), "team-a")
    assert lab.may(ANN, "list", "pods", "team-a")
    lab.registry.delete(ROLE_BINDING, "team-a", made["metadata"]["name"])
    assert not lab.may(ANN, "list", "pods", "team-a")


def test_the_index_is_kept_until_roles_change(lab: AccessLab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.may(ANN, "list", "pods")
    looked: list[Kind] = []
    listed = lab.registry.list

    def listing(kind: Kind) -> list[Object]:
        looked.append(kind)
        return listed(kind)

    monkeypatch.setattr(lab.registry, "list", listing)
    lab.account("robot", "team-a")
    for _ in range(3):
        lab.may(ANN, "list", "pods")
    assert looked == []
    lab.role("reader", [READ_PODS], "team-a")
    lab.may(ANN, "list", "pods")
    assert looked


def test_a_binding_to_a_role_that_is_not_there_gives_nothing(lab: AccessLab) -> None:
    lab.bind("missing", user_subject("ann"), "team-a", "Role")
    lab.bind("missing-too", user_subject("ann"), "team-a")
    assert not lab.may(ANN, "get", "pods", "team-a", "x")


def test_a_binding_without_sense_harms_nobody() -> None:
    lab = AccessLab()
    lab.bind("view", user_subject("ann"), "team-a")
    store = lab.registry.store
    for number, broken in enumerate(
        (
            {},
            {"roleRef": {"kind": "ClusterRole", "name": "view"}, "subjects": [{}, {"kind": "User"}]},
            {"roleRef": {"kind": "Robot", "name": "view"}, "subjects": [user_subject("bob")]},
        )
    ):
        metadata = {"name": f"broken-{number}", "namespace": "team-a"}
        store.write(ROLE_BINDING.resource, {"metadata": metadata, **broken}, None)
    assert lab.may(ANN, "list", "pods", "team-a")
    assert not lab.may(BOB, "list", "pods", "team-a")
    assert not lab.may(person(""), "delete", "pods", "team-a")


@pytest.mark.parametrize(
    ("rule", "asked", "allowed"),
    [
        ({"resources": ["*"], "verbs": ["*"], "apiGroups": ["*"]}, ("delete", "apps", "x/y", "n"), True),
        ({"resources": ["pods"], "verbs": ["get"], "apiGroups": [""]}, ("get", "", "pods/log", "n"), False),
        (
            {"resources": ["pods/log"], "verbs": ["get"], "apiGroups": [""]},
            ("get", "", "pods/log", "n"),
            True,
        ),
        ({"resources": ["pods/log"], "verbs": ["get"], "apiGroups": [""]}, ("get", "", "pods", "n"), False),
        (
            {"resources": ["*/scale"], "verbs": ["get"], "apiGroups": ["*"]},
            ("get", "apps", "x/scale", "n"),
            True,
        ),
        ({"resources": ["*/scale"], "verbs": ["get"], "apiGroups": ["*"]}, ("get", "apps", "x", "n"), False),
        (
            {"resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"], "apiGroups": [""]},
            ("get", "", "pods", "a"),
            True,
        ),
        (
            {"resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"], "apiGroups": [""]},
            ("get", "", "pods", "b"),
            False,
        ),
        (
            {"resources": ["pods"], "verbs": ["list"], "resourceNames": ["a"], "apiGroups": [""]},
            ("list", "", "pods", ""),
            False,
        ),
        ({"resources": ["pods"], "verbs": ["get"]}, ("get", "", "pods", "a"), False),
        ({"nonResourceURLs": ["*"], "verbs": ["*"]}, ("get", "", "pods", "a"), False),
    ],
)
def test_rules(rule: dict[str, list[str]], asked: tuple[str, str, str, str], allowed: bool) -> None:
    (compiled,) = rules_of([rule])
    assert compiled.allows(*asked) is allowed


@pytest.mark.parametrize(
    ("urls", "path", "allowed"),
    [
        (["/metrics"], "/metrics", True),
        (["/metrics"], "/metrics/cadvisor", False),
        (["/openapi/*"], "/openapi/v3", True),
        (["/openapi/*"], "/openapi", False),
        (["*"], "/anything", True),
    ],
)
def test_urls(urls: list[str], path: str, allowed: bool) -> None:
    (compiled,) = rules_of([{"nonResourceURLs": urls, "verbs": ["get"]}])
    assert compiled.allows_url("get", path) is allowed
    assert not compiled.allows_url("post", path)


def test_what_everybody_may(lab: AccessLab) -> None:
    for path in ("/api", "/apis", "/apis/apps/v1", "/openapi/v3", "/version", "/healthz"):
        assert lab.authorizer.allowed_url(ANN, "get", path)
        assert not lab.authorizer.allowed_url(ANN, "post", path)
    assert not lab.authorizer.allowed_url(ANN, "get", "/metrics")
    for url in ("/version", "/healthz", "/readyz", "/livez"):
        assert lab.authorizer.allowed_url(ANONYMOUS, "get", url)
    assert not lab.authorizer.allowed_url(ANONYMOUS, "get", "/api")
    assert lab.may(ANN, "create", "selfsubjectaccessreviews", group="authorization.k8s.io")
    assert not lab.may(ANONYMOUS, "create", "selfsubjectaccessreviews", group="authorization.k8s.io")
    assert not lab.may(ANN, "create", "subjectaccessreviews", group="authorization.k8s.io")


LISTED_WITH_ALL = (("persistentvolumeclaims", ""), ("replicationcontrollers", ""), ("cronjobs", "batch"))


def test_edit_contains_view_and_admin_contains_edit(lab: AccessLab) -> None:
    for role in ("view", "edit", "admin"):
        lab.bind(role, user_subject(role), "team-a")
    view, edit, admin = person("view"), person("edit"), person("admin")
    for user, reads, writes, binds in (
        (view, True, False, False),
        (edit, True, True, False),
        (admin, True, True, True),
    ):
        assert lab.may(user, "get", "configmaps", "team-a", "x") is reads
        assert lab.may(user, "create", "deployments", "team-a", group="apps") is writes
        assert lab.may(user, "create", "pods/exec", "team-a", "x") is writes
        assert lab.may(user, "create", "pods/eviction", "team-a", "x") is writes
        assert lab.may(user, "get", "secrets", "team-a", "x") is writes
        for resource, group in LISTED_WITH_ALL:
            assert lab.may(user, "list", resource, "team-a", group=group) is reads
            assert lab.may(user, "create", resource, "team-a", group=group) is writes
        assert lab.may(user, "create", "rolebindings", "team-a", group=RBAC) is binds
        assert not lab.may(user, "update", "resourcequotas", "team-a", "x")
        assert not lab.may(user, "list", "nodes")


def test_a_chart_adds_its_kinds_to_view(lab: AccessLab) -> None:
    lab.bind("admin", user_subject("ann"), "team-a")
    assert not lab.may(ANN, "get", "waves", "team-a", "w", group="example.org")
    waves = {"apiGroups": ["example.org"], "resources": ["waves"], "verbs": ["get"]}
    lab.role("waves", [waves], metadata={"labels": {f"{RBAC}/aggregate-to-view": "true"}})
    assert lab.may(ANN, "get", "waves", "team-a", "w", group="example.org")


def test_roles_that_aggregate_each_other_and_nonsense(lab: AccessLab) -> None:
    def aggregated(name: str, selector: Object) -> None:
        rule = {"clusterRoleSelectors": [selector]}
        lab.role(name, [], metadata={"labels": {"circle": "yes"}}, aggregationRule=rule)

    aggregated("one", {"matchLabels": {"circle": "yes"}})
    aggregated("two", {"matchLabels": {"circle": "yes"}})
    like = {"matchExpressions": [{"key": "a", "operator": "Like"}]}
    nonsense = {"metadata": {"name": "nonsense"}, "aggregationRule": {"clusterRoleSelectors": [like]}}
    lab.registry.store.write(CLUSTER_ROLE.resource, nonsense, None)
    lab.role("real", [READ_PODS], metadata={"labels": {"circle": "yes"}})
    lab.bind("one", user_subject("ann"))
    lab.bind("nonsense", user_subject("bob"))
    assert lab.may(ANN, "get", "pods", "team-a", "x")
    assert not lab.may(BOB, "get", "pods", "team-a", "x")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (
            ("list", "", "pods", "default", ""),
            'pods is forbidden: User "system:serviceaccount:default:x" cannot list resource "pods" in API '
            'group "" in the namespace "default"',
        ),
        (
            ("get", "apps", "deployments", "default", "web"),
            'deployments.apps "web" is forbidden: User "system:serviceaccount:default:x" cannot get resource '
            '"deployments" in API group "apps" in the namespace "default"',
        ),
        (
            ("list", "", "nodes", "", ""),
            'nodes is forbidden: User "system:serviceaccount:default:x" cannot list resource "nodes" in API '
            'group "" at the cluster scope',
        ),
        (
            ("create", "", "pods/exec", "default", "web"),
            'pods "web" is forbidden: User "system:serviceaccount:default:x" cannot create resource '
            '"pods/exec" in API group "" in the namespace "default"',
        ),
        (
            ("get", "", "namespaces", "", "team-a"),
            'namespaces "team-a" is forbidden: User "system:serviceaccount:default:x" cannot get resource '
            '"namespaces" in API group "" in the namespace "team-a"',
        ),
    ],
)
def test_the_words_of_a_refusal(lab: AccessLab, asked: tuple[str, str, str, str, str], words: str) -> None:
    error = lab.authorizer.refusal(account_user("default", "x"), *asked)
    assert (error.code, error.reason, error.message) == (403, "Forbidden", words)
    assert error.details["kind"] == asked[2].split("/")[0]


def test_the_words_for_a_path(lab: AccessLab) -> None:
    error = lab.authorizer.url_refusal(ANN, "get", "/metrics")
    assert error.message == 'forbidden: User "ann" cannot get path "/metrics"'


def test_ones_own_namespace_can_be_seen(lab: AccessLab) -> None:
    lab.bind("view", user_subject("ann"), "team-a")
    assert lab.may(ANN, "get", "namespaces", name="team-a")
    assert not lab.may(ANN, "get", "namespaces", name="team-b")
    assert not lab.may(ANN, "list", "namespaces")


def test_why_it_is_allowed(lab: AccessLab) -> None:
    lab.bind("view", user_subject("ann"), "team-a")
    lab.bind("view", account_subject("robot", "team-b"))
    reason = lab.authorizer.reason
    assert reason(ANN, "list", "", "pods", "team-a", "") == (
        'RBAC: allowed by RoleBinding "view-ann/team-a" of ClusterRole "view" to User "ann"'
    )
    assert reason(account_user("team-b", "robot"), "list", "", "pods", "", "") == (
        'RBAC: allowed by ClusterRoleBinding "view-robot" of ClusterRole "view" to '
        'ServiceAccount "robot/team-b"'
    )
    assert reason(ANN, "list", "", "pods", "", "") is None


def test_rules_for_a_user(lab: AccessLab) -> None:
    lab.role("reader", [READ_PODS], "team-a")
    lab.bind("reader", user_subject("ann"), "team-a", "Role")
    found = [rule.object() for rule in lab.authorizer.rules_for(ANN, "team-a")]
    assert {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]} in found
    assert any("/openapi" in rule.get("nonResourceURLs", []) for rule in found)
    assert READ_PODS not in [rule.object() for rule in lab.authorizer.rules_for(ANN, "team-b")]


def test_default_roles_are_whole() -> None:
    roles = {(role["kind"], role["metadata"]["name"]): role for role in default_roles()}
    for (kind, _), role in roles.items():
        if kind == "ClusterRoleBinding":
            assert ("ClusterRole", role["roleRef"]["name"]) in roles
        else:
            assert all(rule["verbs"] for rule in role["rules"])
    assert roles["ClusterRole", "admin"]["aggregationRule"]
    assert roles["ClusterRole", "cluster-admin"]["rules"][0] == {
        "apiGroups": ["*"],
        "resources": ["*"],
        "verbs": ["*"],
    }


def test_the_rules_that_are_written_are_those_that_count(lab: AccessLab) -> None:
    for name in ("view", "edit", "admin"):
        written = lab.registry.get(CLUSTER_ROLE, "", name)["rules"]
        counting = lab.authorizer.role_rules({"kind": "ClusterRole", "name": name}, "")
        assert set(rules_of(written)) == set(counting)


def test_pods_do_not_touch_the_index(lab: AccessLab) -> None:
    lab.bind("view", user_subject("ann"), "team-a")
    lab.may(ANN, "list", "pods", "team-a")
    before = lab.authorizer._index
    pod = {
        "metadata": {"name": "p", "namespace": "team-a"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    lab.registry.create(POD, pod)
    assert lab.authorizer._index is before is not None

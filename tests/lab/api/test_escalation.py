"""Nobody gives away what they do not have."""

from __future__ import annotations

from typing import Any

import pytest
from access_lab import RBAC, AccessLab, binding, person, user_subject
from hypothesis import given
from hypothesis import strategies as st

from gpuworkshop.lab.api import escalation
from gpuworkshop.lab.api.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, CONFIG_MAP, ROLE, ROLE_BINDING
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.rbac_rules import Rule, rules_of, uncovered
from gpuworkshop.lab.api.users import ADMIN

ANN = person("ann", "team")


@pytest.fixture
def lab() -> AccessLab:
    """ann is the admin of team-a."""
    found = AccessLab()
    found.bind("admin", user_subject("ann"), "team-a")
    return found


def rule(resources: list[str], verbs: list[str], group: str = "", **more: Any) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs, **more}


def role(*rules: dict[str, Any], **more: Any) -> Object:
    return {"metadata": {"name": "r", "namespace": "team-a"}, "rules": list(rules), **more}


def test_an_admin_gives_away_what_it_has(lab: AccessLab) -> None:
    escalation.check(lab.authorizer, ANN, ROLE, role(rule(["pods", "pods/log"], ["get", "list"])), "team-a")
    escalation.check(
        lab.authorizer, ANN, ROLE_BINDING, binding("view", user_subject("bob"), "team-a"), "team-a"
    )


def test_and_not_what_it_lacks(lab: AccessLab) -> None:
    new = role(rule(["nodes"], ["get", "delete"]), rule(["pods"], ["get"]))
    with pytest.raises(ApiError) as caught:
        escalation.check(lab.authorizer, ANN, ROLE, new, "team-a")
    assert caught.value.code == 403
    assert caught.value.message == (
        'roles.rbac.authorization.k8s.io "r" is forbidden: user "ann" '
        '(groups=["team","system:authenticated"])'
        " is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], Verbs:["delete", "get"]}'
    )


@pytest.mark.parametrize(
    "new",
    [
        rule(["*"], ["get"]),
        rule(["pods"], ["*"]),
        rule(["pods"], ["get"], "*"),
        rule(["resourcequotas"], ["update"]),
        {"nonResourceURLs": ["/metrics"], "verbs": ["get"]},
    ],
)
def test_wildcards_are_more_than_their_parts(lab: AccessLab, new: dict[str, Any]) -> None:
    with pytest.raises(ApiError, match="not currently held"):
        escalation.check(lab.authorizer, ANN, ROLE, role(new), "team-a")


def test_other_namespaces_and_the_cluster(lab: AccessLab) -> None:
    for namespace, kind in (("team-b", ROLE), ("", CLUSTER_ROLE)):
        with pytest.raises(ApiError, match="not currently held"):
            escalation.check(lab.authorizer, ANN, kind, role(rule(["pods"], ["get"])), namespace)
    for name, kind, namespace in (
        ("view", ROLE_BINDING, "team-b"),
        ("cluster-admin", ROLE_BINDING, "team-a"),
    ):
        with pytest.raises(ApiError, match="not currently held"):
            escalation.check(
                lab.authorizer, ANN, kind, binding(name, user_subject("ann"), namespace), namespace
            )
    bound = binding("view", user_subject("ann"))
    with pytest.raises(ApiError, match="clusterrolebindings"):
        escalation.check(lab.authorizer, ANN, CLUSTER_ROLE_BINDING, bound, "")


def test_the_admin_of_the_cluster_may(lab: AccessLab) -> None:
    escalation.check(lab.authorizer, ADMIN, CLUSTER_ROLE, role(rule(["*"], ["*"], "*")), "")
    bound = binding("cluster-admin", user_subject("bob"))
    escalation.check(lab.authorizer, ADMIN, CLUSTER_ROLE_BINDING, bound, "")


def test_escalate_and_bind(lab: AccessLab) -> None:
    lab.role("giver", [rule(["clusterroles"], ["bind"], RBAC, resourceNames=["cluster-admin"])])
    lab.role("maker", [rule(["roles"], ["escalate"], RBAC)])
    for name in ("giver", "maker"):
        lab.bind(name, user_subject("ann"), "team-a")
    bound = binding("cluster-admin", user_subject("bob"), "team-a")
    escalation.check(lab.authorizer, ANN, ROLE_BINDING, bound, "team-a")
    escalation.check(lab.authorizer, ANN, ROLE, role(rule(["nodes"], ["*"])), "team-a")
    other = binding("giver", user_subject("bob"), "team-a")
    other["roleRef"]["name"] = "system:auth-delegator"
    with pytest.raises(ApiError, match="tokenreviews"):
        escalation.check(lab.authorizer, ANN, ROLE_BINDING, other, "team-a")


@pytest.mark.parametrize("kind", ["Role", "ClusterRole"])
def test_a_role_that_is_still_to_come_cannot_be_bound(lab: AccessLab, kind: str) -> None:
    bound = binding("later", user_subject("bob"), "team-a", kind)
    with pytest.raises(ApiError) as caught:
        escalation.check(lab.authorizer, ANN, ROLE_BINDING, bound, "team-a")
    plural = f"{kind.lower()}s.{RBAC}"
    assert (caught.value.code, caught.value.message) == (404, f'{plural} "later" not found')
    escalation.check(lab.authorizer, ADMIN, ROLE_BINDING, bound, "team-a")


def test_nor_for_the_whole_cluster(lab: AccessLab) -> None:
    lab.bind("admin", user_subject("ann"))
    with pytest.raises(ApiError, match='"later" not found'):
        escalation.check(lab.authorizer, ANN, CLUSTER_ROLE_BINDING, binding("later", user_subject("ann")), "")


def test_who_may_bind_it_may_do_so_before_it_is_there(lab: AccessLab) -> None:
    lab.role("binder", [rule(["clusterroles"], ["bind"], RBAC, resourceNames=["later"])])
    lab.bind("binder", user_subject("ann"), "team-a")
    bound = binding("later", user_subject("bob"), "team-a")
    escalation.check(lab.authorizer, ANN, ROLE_BINDING, bound, "team-a")
    other = binding("elsewhere", user_subject("bob"), "team-a")
    with pytest.raises(ApiError, match="not found"):
        escalation.check(lab.authorizer, ANN, ROLE_BINDING, other, "team-a")


def test_a_reference_that_is_none_is_left_to_validation(lab: AccessLab) -> None:
    for reference in ({}, {"kind": "Pod", "name": "x"}):
        bound = {**binding("view", user_subject("bob"), "team-a"), "roleRef": reference}
        escalation.check(lab.authorizer, ANN, ROLE_BINDING, bound, "team-a")


def test_what_does_not_change_the_rights_passes(lab: AccessLab) -> None:
    live = role(rule(["nodes"], ["get"]))
    labelled = {**live, "metadata": {**live["metadata"], "labels": {"a": "b"}}}
    escalation.check(lab.authorizer, ANN, ROLE, labelled, "team-a", live)
    bound = binding("cluster-admin", user_subject("bob"), "team-a")
    escalation.check(lab.authorizer, ANN, ROLE_BINDING, bound, "team-a", bound)
    with pytest.raises(ApiError):
        escalation.check(lab.authorizer, ANN, ROLE, role(rule(["nodes"], ["list"])), "team-a", live)


def test_an_aggregated_role_may_come_to_give_everything(lab: AccessLab) -> None:
    new = role(aggregationRule={"clusterRoleSelectors": [{}]})
    with pytest.raises(ApiError, match=r'Resources:\["\*"\]'):
        escalation.check(lab.authorizer, ANN, CLUSTER_ROLE, new, "team-a")


def test_other_kinds_pass(lab: AccessLab) -> None:
    escalation.check(lab.authorizer, person("eve"), CONFIG_MAP, {"metadata": {"name": "x"}}, "team-a")


WORDS = st.lists(st.sampled_from(["a", "b", "*"]), min_size=1, max_size=2, unique=True)
RULES = st.lists(
    st.builds(
        lambda verbs, groups, resources, names: {
            "verbs": verbs,
            "apiGroups": groups,
            "resources": resources,
            "resourceNames": names,
        },
        WORDS,
        WORDS,
        WORDS,
        st.lists(st.sampled_from(["x", "y"]), max_size=2, unique=True),
    ),
    max_size=3,
).map(rules_of)


@given(RULES, RULES)
def test_what_is_covered_allows_nothing_new(wanted: tuple[Rule, ...], held: tuple[Rule, ...]) -> None:
    missing = uncovered(wanted, held)
    asked = [(v, g, r, n) for v in "abc" for g in "abc" for r in "abc" for n in ("", "x", "z")]
    for one in asked:
        if any(rule.allows(*one) for rule in wanted) and not any(rule.allows(*one) for rule in held):
            assert any(rule.allows(*one) for rule in missing)
    assert uncovered(wanted, [*held, *missing]) == []
    assert uncovered(wanted, wanted) == []

"""Reviews: may I, may somebody, what may I, who am I, whose token is this."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from access_lab import ISSUER, AccessLab, group_subject, person, user_subject

from gpuworkshop.lab.api import kinds, reviews, static_tokens
from gpuworkshop.lab.api.authentication import Authenticator
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object
from gpuworkshop.lab.api.problems import ApiError
from gpuworkshop.lab.api.users import ADMIN, ANONYMOUS, User

ANN = person("ann")


@pytest.fixture
def lab() -> AccessLab:
    found = AccessLab()
    found.bind("view", user_subject("ann"), "team-a")
    found.bind("edit", group_subject("team"), "team-b")
    return found


@pytest.fixture
def authenticator(lab: AccessLab, tmp_path: Path) -> Authenticator:
    return lab.authenticator(tmp_path)


class Asking:
    """Asks in the name of a user."""

    def __init__(self, lab: AccessLab, authenticator: Authenticator) -> None:
        self.lab, self.authenticator = lab, authenticator

    def __call__(self, user: User, kind: Kind, namespace: str = "", /, **spec: Any) -> Object:
        review: Object = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}}
        if spec:
            review["spec"] = spec
        found = reviews.answer(kind, review, user, self.lab.authorizer, self.authenticator, namespace)
        assert (found["kind"], found["apiVersion"]) == (kind.kind, kind.api_version)
        assert found.get("spec", {}) == spec
        status: Object = found["status"]
        return status


@pytest.fixture
def ask(lab: AccessLab, authenticator: Authenticator) -> Asking:
    return Asking(lab, authenticator)


@pytest.mark.parametrize(
    ("attributes", "allowed"),
    [
        ({"verb": "list", "resource": "pods", "namespace": "team-a"}, True),
        ({"verb": "get", "resource": "pods", "subresource": "log", "namespace": "team-a"}, True),
        ({"verb": "create", "resource": "pods", "subresource": "exec", "namespace": "team-a"}, False),
        (
            {
                "verb": "list",
                "resource": "deployments",
                "group": "apps",
                "version": "v1",
                "namespace": "team-a",
            },
            True,
        ),
        ({"verb": "list", "resource": "pods", "namespace": "team-b"}, False),
        ({"verb": "list", "resource": "pods"}, False),
        ({"verb": "*", "resource": "*", "namespace": "team-a"}, False),
        ({}, False),
    ],
)
def test_may_i(ask: Asking, attributes: dict[str, str], allowed: bool) -> None:
    status = ask(ANN, kinds.SELF_SUBJECT_ACCESS_REVIEW, resourceAttributes=attributes)
    assert status["allowed"] is allowed
    assert ("reason" in status) is allowed


def test_why_i_may(ask: Asking) -> None:
    attributes = {"verb": "list", "resource": "pods", "namespace": "team-a"}
    status = ask(ANN, kinds.SELF_SUBJECT_ACCESS_REVIEW, resourceAttributes=attributes)
    assert status["reason"] == (
        'RBAC: allowed by RoleBinding "view-ann/team-a" of ClusterRole "view" to User "ann"'
    )


def test_may_i_see_a_path(ask: Asking) -> None:
    for path, allowed in (("/openapi/v3", True), ("/metrics", False)):
        asked = {"verb": "get", "path": path}
        assert ask(ANN, kinds.SELF_SUBJECT_ACCESS_REVIEW, nonResourceAttributes=asked) == {"allowed": allowed}


def test_the_admin_may_everything(ask: Asking) -> None:
    status = ask(ADMIN, kinds.SELF_SUBJECT_ACCESS_REVIEW, resourceAttributes={"verb": "*", "resource": "*"})
    assert status == {"allowed": True}


def test_may_somebody(ask: Asking) -> None:
    attributes = {"verb": "create", "resource": "pods", "namespace": "team-b"}
    review = kinds.SUBJECT_ACCESS_REVIEW
    assert ask(ADMIN, review, resourceAttributes=attributes, user="bob", groups=["team"])["allowed"]
    assert ask(ADMIN, review, resourceAttributes=attributes, groups=["team"])["allowed"]
    assert not ask(ADMIN, review, resourceAttributes=attributes, user="bob")["allowed"]


def test_not_everybody_may_ask_about_others(ask: Asking) -> None:
    for kind in (kinds.SUBJECT_ACCESS_REVIEW, kinds.TOKEN_REVIEW, kinds.LOCAL_SUBJECT_ACCESS_REVIEW):
        with pytest.raises(ApiError, match=f'User "ann" cannot create resource "{kind.plural}"') as caught:
            ask(ANN, kind, "team-a", user="bob")
        assert caught.value.code == 403
    with pytest.raises(ApiError, match="system:anonymous"):
        ask(ANONYMOUS, kinds.SELF_SUBJECT_REVIEW)


def test_may_somebody_in_my_namespace(lab: AccessLab, ask: Asking) -> None:
    lab.bind("admin", user_subject("eve"), "team-b")
    eve, review = person("eve"), kinds.LOCAL_SUBJECT_ACCESS_REVIEW
    attributes = {"verb": "create", "resource": "pods", "namespace": "team-b"}
    assert ask(eve, review, "team-b", resourceAttributes=attributes, groups=["team"])["allowed"]
    with pytest.raises(
        ApiError, match=r"spec.resourceAttributes.namespace: .* must match metadata.namespace"
    ):
        ask(eve, review, "team-b", resourceAttributes={**attributes, "namespace": "team-a"}, user="ann")
    with pytest.raises(ApiError, match='in the namespace "team-a"'):
        ask(eve, review, "team-a", resourceAttributes={**attributes, "namespace": "team-a"}, user="ann")


@pytest.mark.parametrize(
    ("kind", "spec", "code", "words"),
    [
        (
            kinds.SELF_SUBJECT_ACCESS_REVIEW,
            {},
            422,
            "exactly one of nonResourceAttributes or resourceAttributes",
        ),
        (
            kinds.SELF_SUBJECT_ACCESS_REVIEW,
            {"resourceAttributes": {}, "nonResourceAttributes": {}},
            422,
            "exactly one of nonResourceAttributes or resourceAttributes",
        ),
        (kinds.SUBJECT_ACCESS_REVIEW, {"resourceAttributes": {}}, 422, "at least one of user or group"),
        (kinds.SELF_SUBJECT_RULES_REVIEW, {}, 400, "no namespace on request"),
        (kinds.TOKEN_REVIEW, {}, 400, "token is required"),
        (kinds.SELF_SUBJECT_ACCESS_REVIEW, {"resourceAttributes": "pods"}, 400, "resourceAttributes"),
        (kinds.SUBJECT_ACCESS_REVIEW, {"groups": "team"}, 400, "groups"),
    ],
)
def test_questions_that_make_no_sense(
    ask: Asking, kind: Kind, spec: dict[str, Any], code: int, words: str
) -> None:
    with pytest.raises(ApiError, match=words) as caught:
        ask(ADMIN, kind, **spec)
    assert caught.value.code == code


def test_what_may_i(ask: Asking) -> None:
    status = ask(ANN, kinds.SELF_SUBJECT_RULES_REVIEW, namespace="team-a")
    assert status["incomplete"] is False
    pods = [rule for rule in status["resourceRules"] if "pods" in rule["resources"]]
    assert [rule["verbs"] for rule in pods] == [["get", "list", "watch"]]
    assert any("/version" in rule["nonResourceURLs"] for rule in status["nonResourceRules"])
    elsewhere = ask(ANN, kinds.SELF_SUBJECT_RULES_REVIEW, namespace="team-b")
    assert not any("pods" in rule["resources"] for rule in elsewhere["resourceRules"])


def test_who_am_i(ask: Asking) -> None:
    assert ask(ADMIN, kinds.SELF_SUBJECT_REVIEW) == {
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]}
    }
    user = User("ann", ("a",), "7", {"k": ["v"]})
    full = User("ann", (*user.groups, "system:authenticated"), "7", user.extra)
    assert ask(full, kinds.SELF_SUBJECT_REVIEW)["userInfo"] == {
        "username": "ann",
        "uid": "7",
        "groups": ["a", "system:authenticated"],
        "extra": {"k": ["v"]},
    }


def test_whose_token(lab: AccessLab, authenticator: Authenticator, ask: Asking, tmp_path: Path) -> None:
    token, _ = authenticator.tokens.issue(lab.account("robot"), [ISSUER, "vault"])
    status = ask(ADMIN, kinds.TOKEN_REVIEW, token=token)
    assert (status["authenticated"], status["audiences"]) == (True, [ISSUER])
    assert status["user"]["username"] == "system:serviceaccount:default:robot"
    status = ask(ADMIN, kinds.TOKEN_REVIEW, token=token, audiences=["vault", "other"])
    assert status["audiences"] == ["vault"]
    own = static_tokens.add_user(tmp_path, "ann")
    assert ask(ADMIN, kinds.TOKEN_REVIEW, token=own)["user"]["username"] == "ann"
    assert ask(ADMIN, kinds.TOKEN_REVIEW, token=own, audiences=[ISSUER])["audiences"] == [ISSUER]
    for asked in ({"token": "nonsense"}, {"token": token, "audiences": ["other"]}):
        assert ask(ADMIN, kinds.TOKEN_REVIEW, **asked) == {"user": {}, "error": "invalid bearer token"}

"""Reviews: questions to the API server that are posted, answered, and not kept.

May I, may somebody, what may I, who am I, whose token is this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from gpuworkshop.lab.api import kinds
from gpuworkshop.lab.api.authentication import Authenticator
from gpuworkshop.lab.api.kinds import Kind
from gpuworkshop.lab.api.objects import Object, meta
from gpuworkshop.lab.api.problems import Cause, bad_request, invalid
from gpuworkshop.lab.api.rbac import Authorizer
from gpuworkshop.lab.api.users import User
from gpuworkshop.lab.api.wire import strict


@dataclass(frozen=True)
class Question:
    """A review as it was posted, by whom, and in which namespace if it is of one."""

    kind: Kind
    spec: Mapping[str, Any]
    user: User
    authorizer: Authorizer
    authenticator: Authenticator
    namespace: str


def answer(
    kind: Kind,
    review: Object,
    user: User,
    authorizer: Authorizer,
    authenticator: Authenticator,
    namespace: str = "",
) -> Object:
    """The review with its status. `namespace` is that of the path.

    Raises ApiError 403 when the user may not ask, 400 and 422 for a question that makes no sense.
    """
    strict.check_types(kind, review)
    spec = review.get("spec") or {}
    namespace = (namespace or str(meta(review).get("namespace") or "")) if kind.namespaced else ""
    asked = (user, "create", kind.group, kind.plural, namespace, "")
    if not authorizer.allowed(*asked):
        raise authorizer.refusal(*asked)
    status = _ANSWERS[kind.kind](Question(kind, spec, user, authorizer, authenticator, namespace))
    metadata = {"creationTimestamp": None, **meta(review)}
    head = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
    return {**head, "spec": spec, "status": status} if spec else {**head, "status": status}


def _may_i(question: Question) -> dict[str, Any]:
    return _access(question, question.user)


def _may_somebody(question: Question) -> dict[str, Any]:
    spec = question.spec
    if not (spec.get("user") or spec.get("groups")):
        why = 'Invalid value: "": at least one of user or group must be specified'
        raise invalid(question.kind, "", [Cause("FieldValueInvalid", why, "spec.user")])
    user = User(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "")
    return _access(question, user)


def _may_somebody_here(question: Question) -> dict[str, Any]:
    asked = (question.spec.get("resourceAttributes") or {}).get("namespace")
    if asked != question.namespace:
        why = f'Invalid value: "{asked or ""}": must match metadata.namespace'
        field = "spec.resourceAttributes.namespace"
        raise invalid(question.kind, "", [Cause("FieldValueInvalid", why, field)])
    return _may_somebody(question)


def _access(question: Question, user: User) -> dict[str, Any]:
    resource, url = question.spec.get("resourceAttributes"), question.spec.get("nonResourceAttributes")
    if (resource is None) is (url is None):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        cause = Cause("FieldValueInvalid", f"Invalid value: null: {why}", "spec.resourceAttributes")
        raise invalid(question.kind, "", [cause])
    if url is not None:
        allowed = question.authorizer.allowed_url(user, url.get("verb") or "", url.get("path") or "")
        return {"allowed": allowed}
    asked = {key: value or "" for key, value in (resource or {}).items()}
    plural, sub = asked.get("resource", ""), asked.get("subresource", "")
    reason = question.authorizer.reason(
        user,
        asked.get("verb", ""),
        asked.get("group", ""),
        f"{plural}/{sub}" if sub else plural,
        asked.get("namespace", ""),
        asked.get("name", ""),
    )
    return {"allowed": reason is not None, **({"reason": reason} if reason else {})}


def _what_may_i(question: Question) -> dict[str, Any]:
    namespace = question.spec.get("namespace")
    if not namespace:
        raise bad_request("no namespace on request")
    rules = question.authorizer.rules_for(question.user, namespace)
    return {
        "resourceRules": [rule.object() for rule in rules if rule.resources],
        "nonResourceRules": [rule.object() for rule in rules if rule.urls],
        "incomplete": False,
    }


def _who_am_i(question: Question) -> dict[str, Any]:
    return {"userInfo": question.user.info()}


def _whose_token(question: Question) -> dict[str, Any]:
    token, asked = question.spec.get("token") or "", question.spec.get("audiences") or []
    if not token:
        raise bad_request("token is required for TokenReview in authentication")
    tokens = question.authenticator.tokens
    user = tokens.user(token, asked)
    if user is None:
        return {"user": {}, "error": "invalid bearer token"}
    good_for = tokens.audiences(token, asked) if asked else []
    return {"authenticated": True, "user": user.info(), "audiences": good_for or [tokens.issuer]}


_ANSWERS: Mapping[str, Callable[[Question], dict[str, Any]]] = {
    kinds.SELF_SUBJECT_ACCESS_REVIEW.kind: _may_i,
    kinds.SUBJECT_ACCESS_REVIEW.kind: _may_somebody,
    kinds.LOCAL_SUBJECT_ACCESS_REVIEW.kind: _may_somebody_here,
    kinds.SELF_SUBJECT_RULES_REVIEW.kind: _what_may_i,
    kinds.SELF_SUBJECT_REVIEW.kind: _who_am_i,
    kinds.TOKEN_REVIEW.kind: _whose_token,
}

"""Nobody gives away by RBAC what they do not have: roles and bindings are checked against their writer.

With the verb `escalate` on roles, or `bind` on the role that is bound, one may after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuworkshop.lab.api.kinds import CLUSTER_ROLE, CLUSTER_ROLE_BINDING, ROLE, ROLE_BINDING, Kind
from gpuworkshop.lab.api.objects import Object, name_of
from gpuworkshop.lab.api.problems import forbidden, not_found
from gpuworkshop.lab.api.rbac import Authorizer
from gpuworkshop.lab.api.rbac_rules import EVERYTHING, Rule, rules_of, uncovered
from gpuworkshop.lab.api.users import User

RBAC = ROLE.group


def check(
    authorizer: Authorizer, user: User, kind: Kind, new: Object, namespace: str, live: Object | None = None
) -> None:
    """Raise ApiError 403 if writing `new` over `live` gives rights that `user` lacks; other kinds pass.

    404 for a binding to a role that does not exist, whose rights nobody can know.
    """
    if kind in (ROLE, CLUSTER_ROLE):
        if live is not None and _same(live, new, "rules", "aggregationRule"):
            return
        if not authorizer.allowed(user, "escalate", RBAC, kind.plural, namespace, name_of(new)):
            _refuse(authorizer, user, kind, new, namespace, _rules_granted(new))
    elif kind in (ROLE_BINDING, CLUSTER_ROLE_BINDING):
        if live is not None and _same(live, new, "subjects", "roleRef"):
            return
        _check_binding(authorizer, user, kind, new, namespace)


def _check_binding(authorizer: Authorizer, user: User, kind: Kind, new: Object, namespace: str) -> None:
    role: dict[str, Any] = new.get("roleRef") or {}
    bound = next((each for each in (ROLE, CLUSTER_ROLE) if each.kind == role.get("kind")), None)
    name = role.get("name", "")
    if bound is None or authorizer.allowed(user, "bind", RBAC, bound.plural, namespace, name):
        return  # a role of another kind is for validation to refuse
    if not authorizer.has_role(role, namespace):  # it would give whatever a later role of its name does
        raise not_found(bound, name)
    _refuse(authorizer, user, kind, new, namespace, authorizer.role_rules(role, namespace))


def _rules_granted(role: Object) -> Sequence[Rule]:
    """What a role gives; one that aggregates others may come to give everything."""
    return EVERYTHING if role.get("aggregationRule") else rules_of(role.get("rules"))


def _refuse(
    authorizer: Authorizer, user: User, kind: Kind, new: Object, namespace: str, granted: Sequence[Rule]
) -> None:
    if not (missing := uncovered(granted, authorizer.rules_for(user, namespace))):
        return
    groups = ",".join(f'"{group}"' for group in user.groups)
    rules = "\n".join(map(str, missing))
    who = f'user "{user.name}" (groups=[{groups}])'
    why = f"{who} is attempting to grant RBAC permissions not currently held:\n{rules}"
    raise forbidden(kind, name_of(new), why)


def _same(live: Object, new: Object, *fields: str) -> bool:
    return all((live.get(field) or None) == (new.get(field) or None) for field in fields)

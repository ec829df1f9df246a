"""Who asks: the tokens of people and of ServiceAccounts, and impersonation."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import jwt
import pytest
from access_lab import ISSUER, START, AccessLab
from cryptography.hazmat.primitives.asymmetric import ec
from multidict import CIMultiDict

from gpuworkshop.lab.api import static_tokens
from gpuworkshop.lab.api.account_tokens import ALGORITHM, CLAIM, KEY_FILE, Tokens
from gpuworkshop.lab.api.authentication import ANONYMOUS, Authenticator, User, admin_token
from gpuworkshop.lab.api.kinds import POD, SERVICE_ACCOUNT
from gpuworkshop.lab.api.objects import Object, timestamp
from gpuworkshop.lab.api.problems import ApiError

ROBOT = "system:serviceaccount:team-a:robot"


@pytest.fixture
def lab() -> AccessLab:
    return AccessLab()


@pytest.fixture
def authenticator(lab: AccessLab, tmp_path: Path) -> Authenticator:
    return lab.authenticator(tmp_path / "pki")


def bearer(token: str) -> CIMultiDict[str]:
    return CIMultiDict({"authorization": f"Bearer {token}"})


def claims_of(token: str) -> dict[str, Any]:
    found: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return found


def refused(authenticator: Authenticator, token: str) -> bool:
    with pytest.raises(ApiError) as caught:
        authenticator.user(bearer(token))
    return (caught.value.code, caught.value.reason, caught.value.message) == (
        401,
        "Unauthorized",
        "Unauthorized",
    )


def test_nobody_in_particular(authenticator: Authenticator) -> None:
    assert authenticator.user(CIMultiDict()) is ANONYMOUS
    assert ANONYMOUS.groups == ("system:unauthenticated",)


def test_the_admin(authenticator: Authenticator, tmp_path: Path) -> None:
    token = admin_token(tmp_path / "pki")
    user = authenticator.user(bearer(token))
    assert user.name == "kubernetes-admin"
    assert "system:masters" in user.groups
    assert admin_token(tmp_path / "pki") == token
    assert stat.S_IMODE((tmp_path / "pki" / "admin-token").stat().st_mode) == 0o600


def test_a_damaged_admin_token_is_made_anew(authenticator: Authenticator, tmp_path: Path) -> None:
    old = admin_token(tmp_path / "pki")
    (tmp_path / "pki" / "admin-token").write_bytes(b"\xff\x00 not a token")
    new = admin_token(tmp_path / "pki")
    assert new != old
    assert authenticator.user(bearer(new)).name == "kubernetes-admin"
    assert refused(authenticator, old)


@pytest.mark.parametrize(
    "header", ["Bearer nonsense", "Bearer ", "Bearer", "Basic YTpi", "Bearer a.b.c", "Bearer \u00e9", "x"]
)
def test_wrong_credentials(authenticator: Authenticator, header: str) -> None:
    with pytest.raises(ApiError) as caught:
        authenticator.user(CIMultiDict({"Authorization": header}))
    assert caught.value.code == 401


def test_an_empty_admin_token_is_no_password(authenticator: Authenticator, tmp_path: Path) -> None:
    admin_token(tmp_path / "pki")
    (tmp_path / "pki" / "admin-token").write_text("")
    assert refused(authenticator, "")


def test_users_have_tokens_of_their_own(authenticator: Authenticator, tmp_path: Path) -> None:
    folder = tmp_path / "pki"
    ann = static_tokens.add_user(folder, "ann", ["team-a", "learners"])
    assert authenticator.user(bearer(ann)) == User(
        "ann", ("team-a", "learners", "system:authenticated"), uid="ann"
    )
    bob = static_tokens.add_user(folder, "bob")
    assert authenticator.user(bearer(bob)).groups == ("system:authenticated",)
    assert static_tokens.add_user(folder, "ann", ["others"]) == ann
    assert authenticator.user(bearer(ann)).groups == ("others", "system:authenticated")
    assert stat.S_IMODE((folder / "users.csv").stat().st_mode) == 0o600


def test_the_users_file_of_a_real_api_server(authenticator: Authenticator, tmp_path: Path) -> None:
    text = 'tok1,eve,17,"a,b"\ntok2,joe,18\n\nbroken\n,nobody,1\ntok3,,4\n'
    (tmp_path / "pki" / "users.csv").write_text(text)
    eve = authenticator.user(bearer("tok1"))
    assert (eve.name, eve.uid, eve.groups) == ("eve", "17", ("a", "b", "system:authenticated"))
    assert authenticator.user(bearer("tok2")).name == "joe"
    for token in ("", "broken", "tok3"):
        assert refused(authenticator, token)
    (tmp_path / "pki" / "users.csv").unlink()
    assert refused(authenticator, "tok1")


def test_a_token_of_a_service_account(lab: AccessLab, authenticator: Authenticator) -> None:
    account = lab.account("robot", "team-a")
    token, expires = authenticator.tokens.issue(account)
    claims = claims_of(token)
    uid = account["metadata"]["uid"]
    assert claims["iss"] == ISSUER
    assert claims["aud"] == [ISSUER]
    assert claims["sub"] == ROBOT
    assert (claims["iat"], claims["nbf"], claims["exp"]) == (START, START, START + 3600)
    assert claims[CLAIM] == {"namespace": "team-a", "serviceaccount": {"name": "robot", "uid": uid}}
    assert expires == timestamp(START + 3600)
    assert jwt.get_unverified_header(token)["alg"] == "ES256"
    user = authenticator.user(bearer(token))
    assert (user.name, user.uid) == (ROBOT, uid)
    assert user.groups == (
        "system:serviceaccounts",
        "system:serviceaccounts:team-a",
        "system:authenticated",
    )
    assert user.extra == {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}


def test_it_ends_with_its_time(lab: AccessLab, authenticator: Authenticator) -> None:
    token, _ = authenticator.tokens.issue(lab.account("robot"), None, 600)
    lab.clock.now += 599
    assert authenticator.user(bearer(token)).name.endswith(":robot")
    lab.clock.now += 1
    assert refused(authenticator, token)
    lab.clock.now = START - 1
    assert refused(authenticator, token)


def test_it_ends_with_its_account(lab: AccessLab, authenticator: Authenticator) -> None:
    token, _ = authenticator.tokens.issue(lab.account("robot", "team-a"))
    lab.registry.delete(SERVICE_ACCOUNT, "team-a", "robot")
    assert refused(authenticator, token)
    lab.account("robot", "team-a")
    assert refused(authenticator, token), "an account of the same name is another one"


def test_a_token_of_a_pod_ends_with_the_pod(lab: AccessLab, authenticator: Authenticator) -> None:
    def a_pod() -> Object:
        containers = [{"name": "c", "image": "x"}]
        metadata = {"name": "web", "namespace": "team-a"}
        return lab.registry.create(POD, {"metadata": metadata, "spec": {"containers": containers}})

    pod = a_pod()
    token, expires = authenticator.tokens.issue(lab.account("robot", "team-a"), None, 3607, pod)
    reference = {"name": "web", "uid": pod["metadata"]["uid"]}
    assert claims_of(token)[CLAIM]["pod"] == reference
    user = authenticator.user(bearer(token))
    assert user.extra["authentication.kubernetes.io/pod-name"] == ["web"]
    assert user.extra["authentication.kubernetes.io/pod-uid"] == [reference["uid"]]
    assert expires == timestamp(START + 3607)
    lab.clock.now += 100_000
    assert authenticator.user(bearer(token)).name == ROBOT, "a pod's token outlives what the kubelet asks for"
    lab.registry.delete(POD, "team-a", "web", grace_period=0)
    assert refused(authenticator, token)
    a_pod()
    assert refused(authenticator, token)


def test_a_token_for_somebody_else(lab: AccessLab, authenticator: Authenticator) -> None:
    tokens = authenticator.tokens
    token, _ = tokens.issue(lab.account("robot"), ["vault", "registry"])
    assert claims_of(token)["aud"] == ["vault", "registry"]
    assert refused(authenticator, token)
    found = tokens.user(token, ["vault"])
    assert found is not None
    assert found.name == "system:serviceaccount:default:robot"
    assert tokens.user(token, ["other"]) is None
    assert tokens.audiences(token, ["vault", "other"]) == ["vault"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (599, "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"),
        (2**32 + 1, "may not specify a duration larger than 2^32 seconds"),
    ],
)
def test_durations_that_no_token_has(
    lab: AccessLab, authenticator: Authenticator, seconds: int, words: str
) -> None:
    with pytest.raises(ApiError) as caught:
        authenticator.tokens.issue(lab.account("robot"), None, seconds)
    assert caught.value.code == 422
    assert words in caught.value.message


def test_tokens_that_somebody_else_signed(lab: AccessLab, authenticator: Authenticator) -> None:
    token, _ = authenticator.tokens.issue(lab.account("robot"))
    claims = claims_of(token)
    forged = jwt.encode(claims, ec.generate_private_key(ec.SECP256R1()), algorithm=ALGORITHM)
    unsigned = jwt.encode(claims, "", algorithm="none")
    secret = jwt.encode(claims, "k" * 32, algorithm="HS256")
    head, body, signature = token.split(".")
    for wrong in (forged, unsigned, secret, f"{head}.{body}.", f"{head}.{body}.{signature[::-1]}"):
        assert refused(authenticator, wrong)


def test_tokens_survive_a_restart(lab: AccessLab, authenticator: Authenticator, tmp_path: Path) -> None:
    token, _ = authenticator.tokens.issue(lab.account("robot"))
    assert lab.authenticator(tmp_path / "pki").user(bearer(token)).name.endswith("robot")
    elsewhere = Authenticator(Tokens(lab.registry, tmp_path / "pki", "https://127.0.0.1:1"))
    assert refused(elsewhere, token)


@pytest.mark.parametrize(
    "damage", [b"", b"rubbish", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_damaged_key_is_made_anew(lab: AccessLab, tmp_path: Path, damage: bytes) -> None:
    folder = tmp_path / "pki"
    old, _ = lab.authenticator(folder).tokens.issue(lab.account("robot"))
    (folder / KEY_FILE).write_bytes(damage)
    after = lab.authenticator(folder)
    assert refused(after, old)
    token, _ = after.tokens.issue(lab.account("other"))
    assert after.user(bearer(token)).name.endswith("other")
    assert stat.S_IMODE((folder / KEY_FILE).stat().st_mode) == 0o600


def impersonation(
    authenticator: Authenticator, *headers: tuple[str, str]
) -> tuple[User, list[tuple[str, ...]]]:
    found = authenticator.impersonated(CIMultiDict(headers))
    assert found is not None
    return found.user, [tuple(need) for need in found.needs()]


def test_impersonating_a_user(authenticator: Authenticator) -> None:
    assert authenticator.impersonated(CIMultiDict({"Authorization": "Bearer x"})) is None
    user, needs = impersonation(authenticator, ("impersonate-user", "ann"))
    assert user == User("ann", ("system:authenticated",))
    assert needs == [("", "users", "", "ann")]


def test_impersonating_with_groups(authenticator: Authenticator) -> None:
    headers = [("Impersonate-User", "ann"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")]
    user, needs = impersonation(authenticator, *headers)
    assert user.groups == ("a", "b", "system:authenticated")
    assert needs == [("", "users", "", "ann"), ("", "groups", "", "a"), ("", "groups", "", "b")]


def test_impersonating_a_service_account(authenticator: Authenticator) -> None:
    user, needs = impersonation(authenticator, ("Impersonate-User", ROBOT))
    assert user.groups[:2] == ("system:serviceaccounts", "system:serviceaccounts:team-a")
    assert needs == [("", "serviceaccounts", "team-a", "robot")]


def test_impersonating_uid_and_extra(authenticator: Authenticator) -> None:
    headers = [
        ("Impersonate-User", "ann"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-Acme.com%2fScope", "x"),
    ]
    user, needs = impersonation(authenticator, *headers)
    assert (user.uid, user.extra) == ("7", {"acme.com/scope": ["x"]})
    assert needs[1:] == [
        ("authentication.k8s.io", "uids", "", "7"),
        ("authentication.k8s.io", "userextras/acme.com/scope", "", "x"),
    ]


def test_impersonating_nobody_in_particular(authenticator: Authenticator) -> None:
    user, _ = impersonation(authenticator, ("Impersonate-User", "system:anonymous"))
    assert user.groups == ("system:unauthenticated",)


@pytest.mark.parametrize("header", ["Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-a"])
def test_groups_without_a_user(authenticator: Authenticator, header: str) -> None:
    with pytest.raises(ApiError, match="without impersonating a user") as caught:
        authenticator.impersonated(CIMultiDict({header: "x"}))
    assert caught.value.code == 400


def test_who_may_impersonate(lab: AccessLab, authenticator: Authenticator) -> None:
    lab.bind("edit", {"kind": "User", "name": "ann", "apiGroup": "rbac.authorization.k8s.io"}, "team-a")
    ann = User("ann", ("system:authenticated",))
    for name, allowed in ((ROBOT, True), ("system:serviceaccount:team-b:robot", False), ("bob", False)):
        found = authenticator.impersonated(CIMultiDict({"Impersonate-User": name}))
        assert found is not None
        assert all(lab.authorizer.allowed(ann, "impersonate", *need) for need in found.needs()) is allowed

"""Application credentials and trusts, by the SDK and by keystoneauth, as Heat, Terraform and libcloud use them."""

from collections.abc import Iterator
from typing import Any

import openstack
import pytest
from keystoneauth1 import exceptions
from keystoneauth1.identity import v3
from keystoneauth1.session import Session


@pytest.fixture
def credential(demo: Any) -> Iterator[Any]:
    identity = demo.identity
    made = identity.create_application_credential(demo.current_user_id, "program", roles=[{"name": "member"}])
    yield made
    identity.delete_application_credential(demo.current_user_id, made)


def trust_of(demo: Any, other: Any, **fields: Any) -> Any:
    wanted = {"impersonation": True, "project_id": demo.current_project_id, "roles": [{"name": "member"}], **fields}
    trustor, trustee = demo.current_user_id, other.current_user_id
    return demo.identity.create_trust(trustor_user_id=trustor, trustee_user_id=trustee, **wanted)


def by_credential(shared: Any, credential: Any, **more: Any) -> Session:
    fields = {"application_credential_id": credential.id, "application_credential_secret": credential.secret, **more}
    return Session(v3.ApplicationCredential(shared.accounts.auth_url, **fields))


def by_trust(shared: Any, trust: Any, user: str = "other") -> Session:
    account = shared.accounts[user]
    fields = {"username": user, "password": account.password, "user_domain_id": "default", "trust_id": trust.id}
    return Session(v3.Password(shared.accounts.auth_url, **fields))


def token_of(shared: Any, session: Session) -> Any:
    return shared.ok("GET", "/identity/v3/auth/tokens", headers={"X-Subject-Token": session.get_token()})["token"]


def test_a_program_logs_in_by_a_credential_and_has_its_roles_only(shared: Any, demo: Any, credential: Any) -> None:
    session = by_credential(shared, credential)
    token = token_of(shared, session)
    assert token["application_credential"] == {"id": credential.id, "name": "program", "restricted": True}
    assert (token["user"]["name"], token["project"]["id"]) == ("demo", demo.current_project_id)
    assert [role["name"] for role in token["roles"]] == ["member", "reader"]
    program = openstack.connection.Connection(session=session)
    assert list(program.network.networks()) is not None
    name = {"application_credential_name": "program", "application_credential_id": None}
    assert by_credential(shared, credential, **name, username="demo", user_domain_id="default").get_token()


def test_a_credential_is_listed_without_its_secret(demo: Any, other: Any, credential: Any) -> None:
    listed = list(demo.identity.application_credentials(demo.current_user_id))
    assert [(each.id, each.secret, each.unrestricted) for each in listed] == [(credential.id, None, False)]
    assert demo.identity.get_application_credential(demo.current_user_id, credential.id).project_id
    with pytest.raises(openstack.exceptions.ForbiddenException):
        list(other.identity.application_credentials(demo.current_user_id))
    with pytest.raises(openstack.exceptions.ConflictException):
        demo.identity.create_application_credential(demo.current_user_id, "program")
    assert list(demo.identity.access_rules(demo.current_user_id)) == []


@pytest.mark.parametrize(
    "fields",
    [
        {"roles": [{"name": "admin"}]},
        {"roles": [{"name": "no-such"}]},
        {"roles": "member"},
        {"expires_at": "2001-01-01T00:00:00Z"},
        {"expires_at": "soon"},
        {"access_rules": [{"path": "/v2.1/servers", "method": "GET", "service": "compute"}]},
    ],
)
def test_a_credential_gets_no_more_than_its_user_has(demo: Any, fields: Any) -> None:
    with pytest.raises(openstack.exceptions.HttpException) as refused:
        demo.identity.create_application_credential(demo.current_user_id, "greedy", **fields)
    assert refused.value.status_code in (400, 403, 404)
    assert demo.identity.find_application_credential(demo.current_user_id, "greedy") is None


def test_a_wrong_secret_and_another_scope_get_no_token(shared: Any, devcloud: Any, credential: Any) -> None:
    with pytest.raises(exceptions.Unauthorized):
        by_credential(shared, credential, application_credential_secret="wrong").get_token()
    given = {"id": credential.id, "secret": credential.secret}
    identity = {"methods": ["application_credential"], "application_credential": given}
    for scope in ({"project": {"id": devcloud.project("other")}}, "unscoped"):
        body = {"auth": {"identity": identity, "scope": scope}}
        assert devcloud.http.post(f"{devcloud.url}/identity/v3/auth/tokens", json=body, timeout=20).status_code == 401


def test_a_restricted_credential_makes_no_further_one_not_even_by_another_token(
    shared: Any, demo: Any, other: Any, credential: Any
) -> None:
    session = by_credential(shared, credential)
    again = Session(v3.Token(shared.accounts.auth_url, session.get_token(), project_id=demo.current_project_id))
    assert token_of(shared, again)["application_credential"]["id"] == credential.id
    for program in (openstack.connection.Connection(session=each) for each in (session, again)):
        with pytest.raises(openstack.exceptions.ForbiddenException):
            program.identity.create_application_credential(demo.current_user_id, "second")
        with pytest.raises(openstack.exceptions.ForbiddenException):
            program.identity.delete_application_credential(demo.current_user_id, credential)
        with pytest.raises(openstack.exceptions.ForbiddenException):
            trust_of(program, other)
    free = demo.identity.create_application_credential(demo.current_user_id, "free", unrestricted=True)
    program = openstack.connection.Connection(session=by_credential(shared, free))
    second = program.identity.create_application_credential(demo.current_user_id, "second")
    for made in (second, free):
        demo.identity.delete_application_credential(demo.current_user_id, made)


def test_a_deleted_credential_ends_its_tokens(shared: Any, demo: Any) -> None:
    made = demo.identity.create_application_credential(demo.current_user_id, "short")
    token = by_credential(shared, made).get_token()
    assert shared.cloud.tokens.check(token) is not None
    demo.identity.delete_application_credential(demo.current_user_id, made)
    assert shared.cloud.tokens.check(token) is None


def test_a_trustee_acts_as_the_trustor_in_the_trusts_project(shared: Any, demo: Any, other: Any) -> None:
    trust = trust_of(demo, other)
    token = token_of(shared, by_trust(shared, trust))
    assert token["OS-TRUST:trust"] == {
        "id": trust.id,
        "impersonation": True,
        "trustor_user": {"id": demo.current_user_id},
        "trustee_user": {"id": other.current_user_id},
    }
    assert (token["user"]["name"], token["project"]["id"]) == ("demo", demo.current_project_id)
    assert [role["name"] for role in token["roles"]] == ["member", "reader"]
    own = trust_of(demo, other, impersonation=False)
    assert token_of(shared, by_trust(shared, own))["user"]["name"] == "other"
    with pytest.raises(exceptions.Forbidden):
        by_trust(shared, trust, user="admin").get_token()
    for each in (trust, own):
        demo.identity.delete_trust(each)


def test_trusts_are_seen_by_both_and_deleted_by_the_trustor(shared: Any, demo: Any, other: Any) -> None:
    trust = trust_of(demo, other)
    token = by_trust(shared, trust).get_token()
    assert [each.id for each in other.identity.trusts(trustee_user_id=other.current_user_id)] == [trust.id]
    assert [role["name"] for role in other.identity.get_trust(trust.id).roles] == ["member"]
    for forbidden in (lambda: list(other.identity.trusts()), lambda: other.identity.delete_trust(trust)):
        with pytest.raises(openstack.exceptions.ForbiddenException):
            forbidden()
    demo.identity.delete_trust(trust, ignore_missing=False)
    assert shared.cloud.tokens.check(token) is None
    with pytest.raises(exceptions.NotFound):
        by_trust(shared, trust).get_token()


@pytest.mark.parametrize(
    "fields", [{"roles": []}, {"roles": [{"name": "admin"}]}, {"remaining_uses": 0}, {"allow_redelegation": True}]
)
def test_a_trust_gets_no_more_than_its_trustor_has(demo: Any, other: Any, fields: Any) -> None:
    with pytest.raises(openstack.exceptions.HttpException) as refused:
        trust_of(demo, other, **fields)
    assert refused.value.status_code in (400, 403)


def test_nobody_hands_on_the_rights_of_another(demo: Any, other: Any) -> None:
    users = {"trustor_user_id": demo.current_user_id, "trustee_user_id": other.current_user_id}
    wanted = {"impersonation": True, "project_id": demo.current_project_id, "roles": [{"name": "member"}]}
    with pytest.raises(openstack.exceptions.ForbiddenException):
        other.identity.create_trust(**users, **wanted)


def test_a_trust_is_used_as_often_as_it_says_and_its_token_makes_no_other(shared: Any, demo: Any, other: Any) -> None:
    trust = trust_of(demo, other, remaining_uses=1)
    session = by_trust(shared, trust)
    token = session.get_token()
    assert demo.identity.get_trust(trust.id).remaining_uses == 0
    with pytest.raises(exceptions.Forbidden):
        by_trust(shared, trust).get_token()
    with pytest.raises(exceptions.Forbidden):
        Session(v3.Token(shared.accounts.auth_url, token, project_id=demo.current_project_id)).get_token()
    assert shared.cloud.tokens.check(token) is not None
    demo.identity.delete_trust(trust)


def test_rights_that_their_user_loses_are_lost_by_credential_and_trust(shared: Any, other: Any) -> None:
    identity = shared.sdk("admin").identity
    project = identity.create_project(name="delegating")
    user = identity.create_user(name="delegating", password="a-password", default_project_id=project.id)
    for role in ("member", "reader"):
        identity.assign_project_role_to_user(project, user, identity.find_role(role))
    login = {"username": "delegating", "password": "a-password", "user_domain_id": "default", "project_id": project.id}
    owner = openstack.connection.Connection(session=Session(v3.Password(shared.accounts.auth_url, **login)))
    credential = owner.identity.create_application_credential(user.id, "program", roles=[{"name": "member"}])
    tokens = [by_credential(shared, credential).get_token(), by_trust(shared, trust_of(owner, other)).get_token()]
    assert all(shared.cloud.tokens.check(token) for token in tokens)
    identity.unassign_project_role_from_user(project, user, identity.find_role("member"))
    assert shared.cloud.tokens.check(owner.session.get_token()) is not None
    assert [shared.cloud.tokens.check(token) for token in tokens] == [None, None]
    identity.delete_user(user, ignore_missing=False)
    identity.delete_project(project, ignore_missing=False)
    assert list(other.identity.trusts(trustee_user_id=other.current_user_id)) == []

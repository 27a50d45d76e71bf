"""Keys in the real Barbican, by castellan's client: the user's rights, our account's, and what its policy must say for that."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway import errors
from causeway.clients.keys import KeyClient
from causeway.clients.rights import OF_SERVER, ONLY_USER
from causeway.clients.session import ServiceSessions
from causeway.conf import new_config
from causeway.context import RequestContext
from tests.integration.real_services.barbican import POLICY, ROLE, Barbican
from tests.integration.real_services.configuration import PASSWORD, credentials
from tests.integration.real_services.services import RealServices, keystone_alone

pytestmark = pytest.mark.timeout(300)

KEY = bytes(range(32))


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServices]:
    with keystone_alone(tmp_path_factory.mktemp("keys")) as services:
        yield services


@pytest.fixture(scope="module")
def barbican(services: RealServices) -> Barbican:
    """With three accounts in the project `service`: Barbican's, one that may read keys and one that may not; and two users."""
    barbican = Barbican(services)
    with services.connection(project="admin") as cloud:
        identity = cloud.identity
        project = identity.create_project(name="service", domain_id="default")
        roles = {role.name: role for role in identity.roles()}
        for name in ("service", ROLE):
            roles[name] = roles.get(name) or identity.create_role(name=name)
        for name, has in (
            ("barbican", ("service", "admin")),
            ("reads-keys", ("service", ROLE)),
            ("reads-none", ("service", "admin")),
        ):
            user = identity.create_user(name=name, password=PASSWORD, domain_id="default")
            for role in has:
                identity.assign_project_role_to_user(project, user, roles[role])
        for name in ("demo", "other"):
            own = identity.create_project(name=name, domain_id="default")
            user = identity.create_user(name=name, password=PASSWORD, domain_id="default")
            identity.assign_project_role_to_user(own, user, roles["member"])
        barbican.add_to_catalog(identity)
    barbican.start()
    return barbican


def user(services: RealServices, name: str) -> RequestContext:
    with services.connection(name, name) as cloud:
        return RequestContext(
            auth_token=cloud.auth_token,
            user_id=cloud.current_user_id,
            project_id=cloud.current_project_id,
            overwrite=False,
        )


def client(services: RealServices, account: str) -> KeyClient:
    return KeyClient(ServiceSessions(new_config(barbican_service_user=_password(services, account))))


def _password(services: RealServices, account: str) -> dict[str, Any]:
    return {name: value for name, value in credentials(services.addresses, account).items() if name != "region_name"}


@pytest.fixture(scope="module")
def key_id(services: RealServices, barbican: Barbican) -> str:
    """The user's, as Block Storage keeps one."""
    with services.connection("demo", "demo") as cloud:
        ref: str = cloud.session.post(
            f"{barbican.url}/v1/secrets",
            json={
                "name": "of a volume",
                "algorithm": "aes",
                "bit_length": 256,
                "secret_type": "symmetric",
                "payload": base64.b64encode(KEY).decode(),
                "payload_content_type": "application/octet-stream",
                "payload_content_encoding": "base64",
            },
        ).json()["secret_ref"]
    return ref.rpartition("/")[2]


@pytest.mark.parametrize("account", ["reads-keys", "reads-none"])
def test_a_user_has_the_key_of_their_project_whatever_our_account_may(
    services: RealServices, key_id: str, account: str
) -> None:
    assert client(services, account).read_key(user(services, "demo"), key_id) == KEY


def test_with_the_role_of_the_documented_policy_our_account_reads_the_keys_of_all(
    services: RealServices, key_id: str
) -> None:
    nobody = RequestContext(is_admin=True, overwrite=False)
    for context in (nobody, user(services, "other")):
        assert client(services, "reads-keys").read_key(context, key_id) == KEY


def test_an_administrators_account_without_that_role_reads_none(services: RealServices, key_id: str) -> None:
    nobody = RequestContext(is_admin=True, overwrite=False)
    for context in (nobody, user(services, "other")):
        with pytest.raises(errors.Forbidden, match=f"does not allow to read key {key_id}"):
            client(services, "reads-none").read_key(context, key_id)


def test_an_access_list_of_its_owner_lets_our_account_read_one_key(
    services: RealServices, barbican: Barbican, key_id: str
) -> None:
    with services.connection(project="admin") as cloud:
        reader = cloud.identity.find_user("reads-none").id
    with services.connection("demo", "demo") as cloud:
        acl = {"read": {"users": [reader], "project-access": True}}
        cloud.session.put(f"{barbican.url}/v1/secrets/{key_id}/acl", json=acl)
    try:
        nobody = RequestContext(is_admin=True, overwrite=False)
        assert client(services, "reads-none").read_key(nobody, key_id) == KEY
    finally:
        with services.connection("demo", "demo") as cloud:
            cloud.session.delete(f"{barbican.url}/v1/secrets/{key_id}/acl")


@pytest.mark.usefixtures("barbican")
def test_a_key_of_a_tpm_is_made_once_by_the_user_and_deleted_with_the_server(services: RealServices) -> None:
    keys, owner = client(services, "reads-none"), user(services, "demo")
    made = keys.make_key(owner, "of a TPM", called_as=ONLY_USER)
    assert keys.make_key(owner, "of a TPM", called_as=ONLY_USER) == made
    assert len(keys.read_key(owner, made)) == 32
    for _ in range(2):
        keys.delete_key(owner, made, called_as=OF_SERVER)
    with pytest.raises(errors.KeyNotFound):
        keys.read_key(owner, made)


@pytest.mark.usefixtures("barbican")
def test_a_key_that_is_not_there_is_called_so(services: RealServices) -> None:
    missing = "00000000-0000-4000-8000-000000000000"
    with pytest.raises(errors.KeyNotFound):
        client(services, "reads-keys").read_key(user(services, "demo"), missing)


def test_the_policy_here_is_the_documented_one() -> None:
    documented = (Path(__file__).parents[3] / "docs/deployment.md").read_text()
    assert [line for line in POLICY.splitlines() if line not in documented] == []

"""The key manager by castellan's own client: as whom keys are read, what failures are called, and that nothing hangs."""

from __future__ import annotations

import base64
import logging
import socket
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causeway import errors
from causeway.clients.keys import KeyClient
from causeway.clients.rights import ONLY_USER, SERVICE, CalledAs
from causeway.clients.session import ServiceSessions, calls
from causeway.conf import new_config
from causeway.context import RequestContext
from causeway.devcloud.key_manager import secrets
from tests.functional.clients.conftest import Around, credentials

KEY = bytes(range(32))
READ = "key manager GET /v1/secrets/{secret_id}/payload"


@pytest.fixture
def keys(around: Around) -> KeyClient:
    return KeyClient(around.sessions)


@pytest.fixture
def key_id(around: Around, demo: RequestContext) -> str:
    """Of the user."""
    body = {
        "name": "key",
        "algorithm": "aes",
        "bit_length": 256,
        "secret_type": "symmetric",
        "payload": base64.b64encode(KEY).decode(),
        "payload_content_type": "application/octet-stream",
        "payload_content_encoding": "base64",
    }
    ref: str = around.ask(demo, "POST", "/key-manager/v1/secrets", body)["secret_ref"]
    return ref.rpartition("/")[2]


@pytest.fixture
def only_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "is_key_reader", lambda _caller: False)


@pytest.mark.usefixtures("only_users")
def test_a_user_reads_a_key_with_their_own_rights(keys: KeyClient, demo: RequestContext, key_id: str) -> None:
    assert keys.read_key(demo, key_id) == KEY
    assert calls.snapshot()[READ] == 1


def test_without_a_token_of_the_user_our_own_account_reads_it(
    keys: KeyClient, nobody: RequestContext, other: RequestContext, demo: RequestContext, key_id: str
) -> None:
    demo.auth_token = "expired"
    for context in (nobody, other, demo):
        assert keys.read_key(context, key_id) == KEY


@pytest.mark.usefixtures("only_users")
def test_a_key_that_neither_may_read_is_refused_and_the_operator_hears_why(
    keys: KeyClient, other: RequestContext, key_id: str
) -> None:
    with pytest.raises(errors.Forbidden, match=f"does not allow to read key {key_id}") as refused:
        keys.read_key(other, key_id)
    assert "our own account was refused too" in refused.value.details


@pytest.mark.usefixtures("only_users")
def test_an_access_list_lets_our_account_read_one_key(
    around: Around, keys: KeyClient, demo: RequestContext, nobody: RequestContext, key_id: str
) -> None:
    users = around.ask(around.log_in("admin"), "GET", "/identity/v3/users?name=causeway")["users"]
    around.ask(demo, "PUT", f"/key-manager/v1/secrets/{key_id}/acl", {"read": {"users": [users[0]["id"]]}})
    assert keys.read_key(nobody, key_id) == KEY


@pytest.mark.usefixtures("only_users")
@pytest.mark.parametrize("called_as", [ONLY_USER, SERVICE], ids=["the user's", "ours"])
def test_a_key_is_made_once_for_its_owner_and_deleted_once(
    keys: KeyClient, demo: RequestContext, other: RequestContext, called_as: CalledAs
) -> None:
    name = f"of server {uuid.uuid4()}"
    made = keys.make_key(demo, name, called_as=called_as)
    assert keys.make_key(demo, name, called_as=called_as) == made
    assert len(keys.read_key(demo, made, called_as=called_as)) == 32
    if called_as is ONLY_USER:
        with pytest.raises(errors.Forbidden):
            keys.read_key(other, made)
    for _ in range(2):
        keys.delete_key(demo, made, called_as=called_as)
    with pytest.raises(errors.KeyNotFound):
        keys.read_key(demo, made, called_as=called_as)


def test_a_key_that_is_gone_is_called_so(keys: KeyClient, demo: RequestContext) -> None:
    with pytest.raises(errors.KeyNotFound, match="could not be found in the key manager"):
        keys.read_key(demo, "00000000-0000-4000-8000-000000000000")


def test_no_key_is_in_a_log_of_any_level(
    keys: KeyClient, demo: RequestContext, key_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        assert keys.read_key(demo, key_id) == KEY
    said = "\n".join(record.getMessage() for record in caplog.records)
    for form in (KEY.hex(), base64.b64encode(KEY).decode(), repr(KEY), KEY.decode("latin-1"), demo.auth_token or ""):
        assert form not in said


def at(url: str, around: Around, **options: Any) -> ServiceSessions:
    conf = new_config(
        service_user=credentials(around.accounts), barbican={"barbican_endpoint": url, "http_retries": 1, **options}
    )
    return ServiceSessions(conf)


@pytest.fixture
def silent() -> Iterator[Callable[[], str]]:
    """The URL of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield lambda: f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_key_manager_that_does_not_answer_is_not_waited_for(
    around: Around, demo: RequestContext, silent: Callable[[], str]
) -> None:
    sessions = at(silent(), around, timeout=1)
    calls.reset()
    with pytest.raises(errors.ServiceFailed, match="Try again later"):
        KeyClient(sessions).read_key(demo, "key")
    assert calls.snapshot()[READ] == 2
    sessions.close()


def test_one_that_is_not_there_is_named(around: Around, demo: RequestContext) -> None:
    sessions = at("http://127.0.0.1:9", around)
    with pytest.raises(errors.ServiceFailed, match="The key manager failed when it was asked to read key key"):
        KeyClient(sessions).read_key(demo, "key")
    sessions.close()


def test_a_process_without_an_account_says_what_to_configure(demo: RequestContext) -> None:
    sessions = ServiceSessions(new_config())
    with pytest.raises(errors.ServiceFailed, match="no credentials of its own") as refused:
        KeyClient(sessions).read_key(demo, "key")
    assert "[barbican_service_user]" in refused.value.details
    sessions.close()

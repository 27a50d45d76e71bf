"""A host gets keys for what it was ordered to open: what a grant says, and who can read or change it."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.fernet import Fernet
from oslo_config import cfg

from causeway.conf import new_config
from causeway.context import RequestContext
from causeway.errors import BadRequest, Forbidden, GuestFailed
from causeway.model import tpm_secrets
from causeway.rpc.key_grants import LONGEST_ORDER, KeyGrant, grant_for, open_grant
from causeway.rpc.sealed_keys import KeyQuestion, seal_to
from causeway.rpc.shared_secret import cipher_for

TOKEN = "the-users-token"
ORDER = {
    "block_devices": [{"volume_id": "v2"}, {"volume_id": None}],
    "block_device": {"volume_id": "v1"},
    "instance": {},
}


def configured(**groups: dict[str, Any]) -> cfg.ConfigOpts:
    return new_config(None, **groups)


WITH_KEY = {"conductor": {"credentials_key": "a key"}}


def context() -> RequestContext:
    return RequestContext(user_id="u", auth_token=TOKEN, overwrite=False)


def test_a_grant_has_the_volumes_of_its_order_its_host_and_the_users_token() -> None:
    conf = configured(**WITH_KEY)
    sealed = grant_for(conf, context(), "host1", ORDER)
    assert sealed is not None and TOKEN not in sealed
    assert open_grant(conf, sealed, "host1", "v1") == KeyGrant("host1", ["v1", "v2"], token=TOKEN)
    assert TOKEN not in repr(open_grant(conf, sealed, "host1", "v1"))


def test_a_grant_has_the_key_of_the_tpm_of_its_server() -> None:
    conf = configured(**WITH_KEY)
    sealed = grant_for(
        conf, context(), "host1", {"instance": {"system_metadata": tpm_secrets.with_key({}, "k", "user")}}
    )
    assert open_grant(conf, sealed, "host1", "k").tpm_key == ("k", "user")
    for host, asked_for in (("host2", "k"), ("host1", "user"), ("host1", "v1")):
        with pytest.raises(Forbidden):
            open_grant(conf, sealed, host, asked_for)
    assert grant_for(conf, context(), "host1", {"instance": {"system_metadata": {}}}) is None


@pytest.mark.parametrize(("host", "volume_id"), [("host2", "v1"), ("host1", "v3")])
def test_a_grant_is_of_no_use_to_another_host_or_for_another_volume(host: str, volume_id: str) -> None:
    conf = configured(**WITH_KEY)
    with pytest.raises(Forbidden):
        open_grant(conf, grant_for(conf, context(), "host1", ORDER), host, volume_id)


@pytest.mark.parametrize("sealed", [None, "", "x" * 200, "\u00e9", "of another key"])
def test_what_we_did_not_seal_is_refused(sealed: str | None) -> None:
    if sealed == "of another key":
        sealed = Fernet(Fernet.generate_key()).encrypt(b"{}").decode()
    with pytest.raises(Forbidden):
        open_grant(configured(**WITH_KEY), sealed, "host1", "v1")


def test_a_grant_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    conf = configured(**WITH_KEY)
    sealed = grant_for(conf, context(), "host1", ORDER)
    monkeypatch.setattr("causeway.rpc.key_grants.LONGEST_ORDER", -1)
    with pytest.raises(Forbidden):
        open_grant(conf, sealed, "host1", "v1")
    assert LONGEST_ORDER == 7 * 24 * 3600


def test_orders_without_volumes_and_to_all_hosts_have_no_grant() -> None:
    conf = configured(**WITH_KEY)
    assert grant_for(conf, context(), "host1", {"instance": {"volume_id": "v1"}}) is None
    assert grant_for(conf, context(), None, ORDER) is None


@pytest.mark.parametrize(
    "groups",
    [{}, {"placement": {"auth_type": "password", "password": "hosts have it too"}}],
    ids=["no secret", "one that hosts have"],
)
def test_without_a_secret_that_hosts_do_not_have_there_are_no_grants(groups: dict[str, Any]) -> None:
    assert grant_for(configured(**groups), context(), "host1", ORDER) is None


def test_what_is_sealed_for_one_purpose_is_of_no_use_for_another() -> None:
    conf = configured(**WITH_KEY)
    other = cipher_for(conf, "another purpose")
    assert other is not None
    with pytest.raises(Forbidden):
        open_grant(conf, other.encrypt(b'{"host":"host1","volume_ids":["v1"]}').decode(), "host1", "v1")


def test_a_key_is_read_by_the_host_that_asked_and_by_nobody_else() -> None:
    question, other = KeyQuestion(), KeyQuestion()
    sealed = seal_to(question.public, "c0ffee")
    assert "c0ffee" not in sealed and sealed != seal_to(question.public, "c0ffee")
    assert question.open(sealed) == "c0ffee"
    for answer in (seal_to(other.public, "c0ffee"), "", "x y", sealed[:-4], f"{other.public} {sealed.split()[1]}"):
        with pytest.raises(GuestFailed):
            question.open(answer)


@pytest.mark.parametrize("public", ["", "short", "!" * 44, "AAAA" * 10, "A" * 43 + "="])
def test_a_key_is_sealed_to_public_keys_only(public: str) -> None:
    with pytest.raises(BadRequest):
        seal_to(public, "c0ffee")


def test_a_host_hands_back_the_grant_of_its_order_and_nothing_else() -> None:
    order = context().tokenless("sealed")
    assert (order.auth_token, order.key_grant) == (None, "sealed")
    arrived = RequestContext.from_dict(order.to_dict(), overwrite=False)
    assert arrived.key_grant == "sealed"
    # What is stored, and what another host gets of it, has none.
    assert "key_grant" not in arrived.without_tokens()
    assert arrived.tokenless().key_grant is None

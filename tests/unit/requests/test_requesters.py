"""Who asked for a server is kept with its build request; the token can be read with the key, and by nobody else."""

from __future__ import annotations

from typing import Any

import pytest
from oslo_config import cfg

from causeway.conf import new_config
from causeway.context import RequestContext
from causeway.model.requesters import Requester
from causeway.requests import requesters

UUID, OTHER_UUID = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
TOKEN = "the-users-token"


def configured(**groups: dict[str, Any]) -> cfg.ConfigOpts:
    return new_config(None, **groups)


def of_service(password: str) -> cfg.ConfigOpts:
    return configured(service_user={"auth_type": "password", "password": password})


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(
        user_id="user",
        project_id="project",
        roles=["member"],
        global_request_id="req-11111111-1111-1111-1111-111111111111",
        auth_token=TOKEN,
        service_token="another-token",
        overwrite=False,
    )


def test_who_takes_a_build_up_has_the_rights_of_who_asked_for_it(context: RequestContext) -> None:
    conf = configured(conductor={"credentials_key": "a key"})
    found = requesters.context_of(conf, requesters.requester_of(conf, context, UUID), UUID)
    for name in ("user_id", "project_id", "roles", "request_id", "global_request_id", "is_admin", "auth_token"):
        assert getattr(found, name) == getattr(context, name)
    assert found is not None and not found.is_admin
    assert found.service_token is None


def test_the_key_may_be_the_password_that_api_and_conductors_share(context: RequestContext) -> None:
    kept = requesters.requester_of(of_service("secret"), context, UUID)
    of_conductor = configured(
        service_user={"auth_type": "password", "password": "secret"},
        placement={"auth_type": "password", "password": "another"},
    )
    found = requesters.context_of(of_conductor, kept, UUID)
    assert found is not None and found.auth_token == TOKEN


@pytest.mark.parametrize("conf", [configured(), of_service("another")], ids=["no key", "another key"])
def test_without_the_key_the_user_is_known_and_the_token_is_not(context: RequestContext, conf: cfg.ConfigOpts) -> None:
    found = requesters.context_of(conf, requesters.requester_of(of_service("secret"), context, UUID), UUID)
    assert found is not None
    assert (found.user_id, found.request_id, found.auth_token) == ("user", context.request_id, None)


def test_without_a_key_no_token_is_kept(context: RequestContext) -> None:
    assert requesters.requester_of(configured(), context, UUID).sealed_token is None


def test_a_token_is_of_no_use_in_the_row_of_another_server(context: RequestContext) -> None:
    conf = of_service("secret")
    kept = requesters.requester_of(conf, context, UUID)
    found = requesters.context_of(conf, kept, OTHER_UUID)
    assert found is not None and found.auth_token is None


def test_nobody_sees_the_token(context: RequestContext, caplog: pytest.LogCaptureFixture) -> None:
    conf = of_service("secret")
    kept = requesters.requester_of(conf, context, UUID)
    assert kept.sealed_token is not None
    requesters.context_of(of_service("another"), kept, UUID)
    shown = repr(kept) + caplog.text
    for secret in (TOKEN, "another-token", kept.sealed_token):
        assert secret not in shown
    assert TOKEN not in str(kept.requester) + kept.sealed_token
    assert "another-token" not in str(kept.requester)


def test_the_ids_that_were_checked_are_stored_with_the_requester(context: RequestContext) -> None:
    conf = of_service("secret")
    context.has_checked("image", "volume")
    stored = requesters.requester_of(conf, context, UUID).requester
    assert requesters.checked_of(stored) == frozenset({"image", "volume", "project"})
    found = requesters.context_of(conf, Requester(stored), UUID)
    assert found is not None
    assert (found.checked, found.work) == (set(), None), "only the engine makes accepted work of a request"


def test_an_earlier_release_has_stored_no_ids(context: RequestContext) -> None:
    assert requesters.checked_of(None) is None
    assert requesters.checked_of(context.without_tokens()) is None

"""A token that was let through is let through for some seconds, with nothing that the request says itself."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from causeway.api import remembered_tokens
from causeway.api.remembered_tokens import RememberedTokens, seconds_for

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HEADERS = ("HTTP_X_USER_ID", "HTTP_X_PROJECT_ID", "HTTP_X_ROLES", "HTTP_OPENSTACK_SYSTEM_SCOPE")


@dataclass
class Clock:
    seconds: float = 0.0
    tokens: RememberedTokens = field(init=False)

    def __post_init__(self) -> None:
        self.tokens = RememberedTokens(
            HEADERS, 5, clock=lambda: self.seconds, now=lambda: NOON + timedelta(seconds=self.seconds)
        )


@pytest.fixture
def clock() -> Clock:
    return Clock()


def let_through(*, expires: datetime = NOON + timedelta(hours=1), token: str = "t", **content: Any) -> dict[str, Any]:
    """An environment as keystonemiddleware leaves it."""
    shown = {"expires_at": expires.isoformat().replace("+00:00", "Z"), "methods": ["password"], **content}
    return {
        "HTTP_X_AUTH_TOKEN": token,
        "HTTP_X_IDENTITY_STATUS": "Confirmed",
        "HTTP_X_USER_ID": "u",
        "HTTP_X_ROLES": "member",
        "keystone.token_info": {"token": shown},
    }


def test_a_caller_is_recognised_for_some_seconds(clock: Clock) -> None:
    assert not clock.tokens.recognise({"HTTP_X_AUTH_TOKEN": "t"})
    clock.tokens.keep(let_through())
    environ = {"HTTP_X_AUTH_TOKEN": "t"}
    clock.seconds = 4.9
    assert clock.tokens.recognise(environ)
    assert environ == {"HTTP_X_AUTH_TOKEN": "t", "HTTP_X_USER_ID": "u", "HTTP_X_ROLES": "member"}
    clock.seconds = 5.0
    assert not clock.tokens.recognise({"HTTP_X_AUTH_TOKEN": "t"})


def test_what_a_request_claims_of_itself_is_not_believed(clock: Clock) -> None:
    clock.tokens.keep(let_through())
    environ = {
        "HTTP_X_AUTH_TOKEN": "t",
        "HTTP_X_USER_ID": "somebody else",
        "HTTP_X_PROJECT_ID": "another",
        "HTTP_X_ROLES": "admin",
        "HTTP_OPENSTACK_SYSTEM_SCOPE": "all",
    }
    assert clock.tokens.recognise(environ)
    assert environ == {"HTTP_X_AUTH_TOKEN": "t", "HTTP_X_USER_ID": "u", "HTTP_X_ROLES": "member"}


@pytest.mark.parametrize("token", ["T", "t2", "", None])
def test_another_token_is_another_caller(clock: Clock, token: str | None) -> None:
    clock.tokens.keep(let_through())
    assert not clock.tokens.recognise({} if token is None else {"HTTP_X_AUTH_TOKEN": token})


def test_a_token_that_has_expired_is_not_recognised(clock: Clock) -> None:
    clock.tokens.keep(let_through(expires=NOON + timedelta(seconds=2)))
    assert clock.tokens.recognise({"HTTP_X_AUTH_TOKEN": "t"})
    clock.seconds = 2.0
    assert not clock.tokens.recognise({"HTTP_X_AUTH_TOKEN": "t"})


@pytest.mark.parametrize(
    "environ",
    [
        let_through(bind={"kerberos": "u@R"}),
        let_through(application_credential={"id": "a", "access_rules": []}),
        let_through() | {"HTTP_X_SERVICE_TOKEN": "s"},
        let_through() | {"HTTP_X_IDENTITY_STATUS": "Invalid"},
        {"HTTP_X_AUTH_TOKEN": "t", "HTTP_X_IDENTITY_STATUS": "Confirmed", "HTTP_X_USER_ID": "u"},
    ],
    ids=["bound", "access rules", "service token", "not confirmed", "nothing known"],
)
def test_what_depends_on_more_than_the_token_is_not_kept(clock: Clock, environ: dict[str, Any]) -> None:
    clock.tokens.keep(environ)
    assert not clock.tokens.recognise({"HTTP_X_AUTH_TOKEN": "t"})


def test_a_request_with_a_service_token_is_looked_at(clock: Clock) -> None:
    clock.tokens.keep(let_through())
    assert not clock.tokens.recognise({"HTTP_X_AUTH_TOKEN": "t", "HTTP_X_SERVICE_TOKEN": "s"})


def test_a_token_that_was_refused_is_discarded(clock: Clock) -> None:
    clock.tokens.keep(let_through())
    clock.tokens.discard({"HTTP_X_AUTH_TOKEN": "t"})
    assert not clock.tokens.recognise({"HTTP_X_AUTH_TOKEN": "t"})


def test_the_number_of_remembered_tokens_is_bounded(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered_tokens, "MOST", 3)
    for number in range(20):
        clock.seconds = float(number)
        clock.tokens.keep(let_through(token=str(number)))
        assert len(clock.tokens._callers) <= 3
    assert clock.tokens.recognise({"HTTP_X_AUTH_TOKEN": "19"})


@pytest.mark.parametrize(("cached", "here"), [(300, 5), (10, 5), (9, 0), (1, 0), (0, 0), (-1, 0)])
def test_who_wants_tokens_looked_at_often_gets_that(cached: int, here: int) -> None:
    assert seconds_for(cached) == here

"""As whom a call is made: every kind of context with everything that a call can be about. The table is that of the module."""

from __future__ import annotations

import pytest

from causeway import errors
from causeway.clients.rights import NOT_YOURS, OF_SERVER, ONLY_USER, SERVICE, CalledAs, decide, named, of_server_with
from causeway.context import RequestContext, admin_context

THING, OTHER = "thing", "other"
TOKEN, OURS, REFUSED = "the token", "our credentials", "refused"
EXPIRED = "the token; our credentials after 401"
NOT_SEEN = "the token; our credentials after 401, 403, 404"


def user(token: str | None = "token") -> RequestContext:
    return RequestContext(user_id="user", project_id="project", auth_token=token, overwrite=False)


CONTEXTS: dict[str, RequestContext | None] = {
    "a request": user(),
    "work": user().for_work(frozenset({THING})),
    "work without token": user(None).for_work(frozenset({THING})),
    "a user without token": user(None),
    "an operation of nobody": admin_context().for_work(frozenset({THING})),
    "the system": admin_context(),
    "nothing": None,
}
ABOUT: dict[str, CalledAs] = {
    "only the user": ONLY_USER,
    "named": named(THING),
    "named, not checked": named(THING, OTHER),
    "named, no id": named(),
    "of a server": OF_SERVER,
    "of a server, with something named": of_server_with(THING),
    "of a server, with something not checked": of_server_with(OTHER),
    "the system's": SERVICE,
}
# what the call is about -> for each context, in the order of `CONTEXTS`
TABLE: dict[str, list[str]] = {
    "only the user": [TOKEN, TOKEN, REFUSED, REFUSED, REFUSED, REFUSED, REFUSED],
    "named": [TOKEN, EXPIRED, OURS, REFUSED, OURS, OURS, OURS],
    "named, not checked": [TOKEN, TOKEN, REFUSED, REFUSED, REFUSED, OURS, OURS],
    "named, no id": [TOKEN, TOKEN, REFUSED, REFUSED, REFUSED, OURS, OURS],
    "of a server": [NOT_SEEN, NOT_SEEN, OURS, OURS, OURS, OURS, OURS],
    "of a server, with something named": [TOKEN, NOT_SEEN, OURS, REFUSED, OURS, OURS, OURS],
    "of a server, with something not checked": [TOKEN, TOKEN, REFUSED, REFUSED, REFUSED, OURS, OURS],
    "the system's": [OURS] * 7,
}


def decided(context: RequestContext | None, about: CalledAs) -> str:
    try:
        rights = decide(context, about, "show it")
    except errors.Unauthorized as refusal:
        assert refusal.message == "To show it needs a token that is still valid. Log in again."
        return REFUSED
    if not rights.as_user:
        assert not rights.ours_after
        return OURS
    return {frozenset(): TOKEN, frozenset({401}): EXPIRED, NOT_YOURS | {401}: NOT_SEEN}[rights.ours_after]


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("about", ABOUT)
def test_what_a_call_is_about_and_whom_it_is_for_decide(about: str, context: str) -> None:
    assert decided(CONTEXTS[context], ABOUT[about]) == TABLE[about][list(CONTEXTS).index(context)]


def test_where_nobody_has_tokens_users_are_what_they_say() -> None:
    """[api] auth_strategy noauth2 is for tests."""
    assert not decide(user(None), named(THING), "show it", without_identity=True).as_user
    with pytest.raises(errors.Unauthorized):
        decide(user(None), ONLY_USER, "show it", without_identity=True)


def test_other_processes_do_not_learn_what_was_accepted() -> None:
    """A message makes no accepted work of a request, whatever its sender writes into it."""
    work = user().for_work(frozenset({THING}))
    assert work.work == frozenset({THING})
    sent = work.to_dict() | {"work": [THING], "checked": [THING]}
    arrived: RequestContext = RequestContext.from_dict(sent, overwrite=False)
    assert (arrived.work, arrived.checked) == (None, set())


def test_copies_of_a_context_stand_for_the_same() -> None:
    """A copy without this would be a user's request that never ends, or the system's own work."""
    work = user(None).for_work(frozenset({THING}))
    for copy in (work.elevated(), work.for_another_request()):
        assert copy.work == frozenset({THING})
        assert decided(copy, named(OTHER)) == REFUSED


def test_accepted_work_notes_no_more_checks() -> None:
    request = user()
    request.has_checked(THING)
    assert request.checked == {THING}
    work = request.for_work(frozenset(request.checked))
    work.has_checked(OTHER)
    assert OTHER not in work.checked | (work.work or frozenset())

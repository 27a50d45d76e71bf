"""As whom other services are called: with the user's token, or with our own credentials. This is decided here and nowhere else.

Every call of a client says what it is about (`CalledAs`). What decides beside that is whom the context stands for:

========================  ==================  ======================  =========================  ===============
the context stands for    `ONLY_USER`         `named` by a user       `OF_SERVER`                `SERVICE`
========================  ==================  ======================  =========================  ===============
a user's request          token               token                   token; if refused, ours    ours
accepted work of a user   token               token; if it has        token; if refused, ours    ours
                                              expired, ours, for
                                              what was checked
the same, without token   refused             ours, for what was      ours                       ours
                                              checked
a user without token      refused             refused                 ours                       ours
the system itself         refused             ours                    ours                       ours
========================  ==================  ======================  =========================  ===============

While a request is served, what a user named is used only with that user's token: 401, 403 and 404 are the user's answer. Only
work that was accepted, and so may last longer than a token, continues with our own credentials; and only for the ids that the
services let this user have while the request was served. Client methods that check an id note it (`RequestContext.has_checked`),
and it is kept with the operation (`causeway.requests.requesters`). Only the engine of operations makes a context of accepted work
(`RequestContext.for_work`). An attach has none of these ids: its user waits for it, and the volume is reserved with their token
or not at all.

What our records say that a server has was checked when it came into the records: only accepted operations write them. With a
user's token a service answers 403 or 404 for what belongs to another project. An administrator may have given such a thing to the
server, so only the same answer to our own credentials means that it is gone.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from causeway import errors
from causeway.context import RequestContext

# The answers of a service about a thing of another project.
NOT_YOURS = frozenset({403, 404})
EXPIRED = frozenset({401})
NEVER: frozenset[int] = frozenset()


class About(Enum):
    """What a call is about."""

    USERS = "what only the user can do: make things of their own, have a call of theirs passed on"
    NAMED = "what a user named"
    SERVERS = "what our records say that a server has, or what was made for it"
    OURS = "what the system does by itself, or has checked by other means"


@dataclass(frozen=True)
class CalledAs:
    """What a call is about. ``named``: the ids in it that a user named, and that this user must be allowed to use."""

    about: About
    named: frozenset[str] = frozenset()


ONLY_USER = CalledAs(About.USERS)
OF_SERVER = CalledAs(About.SERVERS)
SERVICE = CalledAs(About.OURS)


def named(*ids: str) -> CalledAs:
    """A call about things that a user named; without ids, about all that the user may see."""
    return CalledAs(About.NAMED, frozenset(ids))


def of_server_with(*ids: str) -> CalledAs:
    """A call about a thing of a server that also uses things which a user named."""
    return CalledAs(About.SERVERS, frozenset(ids))


@dataclass(frozen=True)
class Rights:
    """``as_user``: the call is made with the user's token. ``ours_after``: the answers after which it is made with our own
    credentials once more.
    """

    as_user: bool
    ours_after: frozenset[int] = NEVER


_OURS = Rights(as_user=False)
_ONLY_THEIRS = Rights(as_user=True)


def decide(context: RequestContext | None, called_as: CalledAs, what: str, *, without_identity: bool = False) -> Rights:
    """As whom a call is made. ``without_identity``: nobody has tokens ([api] auth_strategy is noauth2).

    ``what`` completes "to ..." in the error. Raises Unauthorized if the call may only be made for a user whose token is missing.
    """
    has_token = context is not None and bool(context.auth_token)
    if called_as.about is About.OURS:
        return _OURS
    if called_as.about is About.USERS:
        if has_token:
            return _ONLY_THEIRS
        raise _needs_token(what)
    allowed = _may_be_ours(context, called_as)
    if has_token:
        if not allowed:
            return _ONLY_THEIRS
        return Rights(True, EXPIRED if called_as.about is About.NAMED else EXPIRED | NOT_YOURS)
    if allowed or without_identity:
        return _OURS
    raise _needs_token(what)


def _may_be_ours(context: RequestContext | None, called_as: CalledAs) -> bool:
    """Whether our own credentials may be used if there is no valid token of the user."""
    if context is None or context.is_systems:
        return True
    if not called_as.named:
        return called_as.about is About.SERVERS
    return context.work is not None and called_as.named <= context.work


def _needs_token(what: str) -> errors.Unauthorized:
    return errors.Unauthorized(f"To {what} needs a token that is still valid. Log in again.")

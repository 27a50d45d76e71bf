"""The requester of an operation, stored with it, so that a conductor that takes it over acts for the same user."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Requester:
    """``requester``: the context of the request, without tokens, and the ids that were checked for it.

    ``sealed_token``: the user's token, encrypted.
    """

    requester: dict[str, Any] | None = None
    sealed_token: str | None = field(default=None, repr=False)

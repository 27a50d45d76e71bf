"""The requester of an operation. It is stored with the operation, so that a conductor that takes it over acts for the same user.

With it are stored the ids that other services let the user have before the operation was accepted: only for these may the
operation continue with our own credentials when the token has expired (`causeway.clients.rights`).

The user's token is stored encrypted, and only until the operation has ended. The key is derived from a secret that API and
conductors share. It differs for each server, so that a token can't be used in another server's row.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from oslo_config import cfg

from causeway.context import RequestContext
from causeway.model.requesters import Requester
from causeway.rpc.shared_secret import cipher_for

LOG = logging.getLogger(__name__)

# The key of the checked ids among what is stored of the requester. Earlier releases ignore it.
CHECKED = "checked"


def requester_of(conf: cfg.ConfigOpts, context: RequestContext, instance_uuid: str) -> Requester:
    """The requester in the form that may be stored."""
    cipher = _cipher(conf, instance_uuid)
    # The identity service let the user have the project.
    checked = context.checked | ({context.project_id} if context.project_id else set())
    stored = context.without_tokens() | {CHECKED: sorted(checked)}
    if cipher is None or not context.auth_token:
        return Requester(stored)
    return Requester(stored, cipher.encrypt(context.auth_token.encode()).decode())


def checked_of(requester: Mapping[str, Any] | None) -> frozenset[str] | None:
    """The ids that were checked before an operation was accepted; None if release 0.1.0 accepted it, which kept none.

    ``requester``: as it is stored.
    """
    return None if requester is None or CHECKED not in requester else frozenset(requester[CHECKED])


def context_of(conf: cfg.ConfigOpts, kept: Requester, instance_uuid: str) -> RequestContext | None:
    """The context of the user's request, without a token if none was stored or the present key can't decrypt it.

    None if no requester is stored.
    """
    if kept.requester is None:
        return None
    values = kept.requester | {"auth_token": _token(conf, kept, instance_uuid)}
    context: RequestContext = RequestContext.from_dict(values, overwrite=False)
    return context


def _token(conf: cfg.ConfigOpts, kept: Requester, instance_uuid: str) -> str | None:
    cipher = _cipher(conf, instance_uuid)
    if cipher is None or kept.sealed_token is None:
        return None
    try:
        return cipher.decrypt(kept.sealed_token.encode()).decode()
    except InvalidToken:
        LOG.warning(
            "The token of the requester of an operation on server %s can't be decrypted: the API used another key."
            " See [conductor] credentials_key",
            instance_uuid,
        )
        return None


def _cipher(conf: cfg.ConfigOpts, instance_uuid: str) -> Fernet | None:
    return cipher_for(conf, f"causeway: the token of the request for server {instance_uuid}")

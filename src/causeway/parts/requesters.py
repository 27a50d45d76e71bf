"""Who asked for a server: kept with its build request, so that whoever takes the build up acts for the same user.

The user's token is kept encrypted, and only until the build request is deleted: when the server has a cell, or goes. The key
is made of what API and conductors share. It is another one for each server, so that no row's token is of use in another row.
"""

from __future__ import annotations

import base64
import logging

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from oslo_config import cfg

from causeway.context import RequestContext
from causeway.store.api.build_requests import BuildRequest

LOG = logging.getLogger(__name__)

# Whose secret makes the key if [conductor] credentials_key does not: API and conductors have both.
SHARED_CREDENTIALS = ("service_user", "placement")
SECRETS_OF_CREDENTIALS = ("password", "application_credential_secret")
KEY_BYTES = 32


def keep(conf: cfg.ConfigOpts, context: RequestContext, request: BuildRequest) -> BuildRequest:
    """Puts who asks into a build request that is to be written; returns it."""
    request.requester = context.without_tokens()
    cipher = _cipher(conf, request)
    if cipher is not None and context.auth_token:
        request.sealed_token = cipher.encrypt(context.auth_token.encode()).decode()
    return request


def context_of(conf: cfg.ConfigOpts, request: BuildRequest) -> RequestContext:
    """The context of the user's request; without a token if none was kept, or it can't be read with the present key."""
    if request.requester is None:
        # An older version wrote it: its user is known, and has no rights but those that the build needs anyway.
        instance = request.instance
        return RequestContext(user_id=instance.user_id, project_id=instance.project_id, overwrite=False)
    values = request.requester | {"auth_token": _token(conf, request)}
    context: RequestContext = RequestContext.from_dict(values, overwrite=False)
    return context


def _token(conf: cfg.ConfigOpts, request: BuildRequest) -> str | None:
    cipher = _cipher(conf, request)
    if cipher is None or request.sealed_token is None:
        return None
    try:
        return cipher.decrypt(request.sealed_token.encode()).decode()
    except InvalidToken:
        LOG.warning(
            "The token of the user who created server %s can't be decrypted: the key is not the one that the API had."
            " See [conductor] credentials_key",
            request.instance_uuid,
        )
        return None


def _cipher(conf: cfg.ConfigOpts, request: BuildRequest) -> Fernet | None:
    secret = _secret(conf)
    if not secret:
        return None
    purpose = f"causeway: the token of the request for server {request.instance_uuid}"
    derived = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose.encode()).derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


def _secret(conf: cfg.ConfigOpts) -> str:
    key: str = conf.conductor.credentials_key
    if key:
        return key
    sections = [conf[group].auth_section or group for group in SHARED_CREDENTIALS]
    # Which of these options there are is said by the plug-in.
    found = (getattr(conf[section], name, None) for section in sections for name in SECRETS_OF_CREDENTIALS)
    return next((secret for secret in found if secret), "")

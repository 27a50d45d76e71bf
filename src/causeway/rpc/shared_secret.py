"""Sealing with the secret that API and conductors share: ``[conductor] credentials_key``."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from oslo_config import cfg

# Groups whose secret is used for the key if [conductor] credentials_key is not set. API and conductors have both.
SHARED_CREDENTIALS = ("service_user", "placement")
SECRETS_OF_CREDENTIALS = ("password", "application_credential_secret")
KEY_BYTES = 32


def cipher_for(conf: cfg.ConfigOpts, purpose: str, accounts: Sequence[str] = SHARED_CREDENTIALS) -> Fernet | None:
    """The cipher for one purpose: what it seals can't be used for another one. None: there is no shared secret.

    ``accounts``: the groups whose secret may stand in for the key.
    """
    secret = _secret(conf, accounts)
    if not secret:
        return None
    derived = HKDF(algorithm=SHA256(), length=KEY_BYTES, salt=None, info=purpose.encode()).derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


def _secret(conf: cfg.ConfigOpts, accounts: Sequence[str]) -> str:
    key: str = conf.conductor.credentials_key
    if key:
        return key
    sections = [conf[group].auth_section or group for group in accounts]
    # The plug-in decides which of these options exist.
    found = (getattr(conf[section], name, None) for section in sections for name in SECRETS_OF_CREDENTIALS)
    return next((secret for secret in found if secret), "")

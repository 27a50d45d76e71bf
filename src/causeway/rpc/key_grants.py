"""A grant lets a host ask for the keys of the volumes in an order, and of its server's TPM, and for no others.

Whoever sends a host an order with volumes seals a grant into the order's context: which host, which server, which volumes, and
the token of the user who asked for it. A host can't open or change it. It hands the grant back when it asks its cell's conductor
for a key (`CellConductorClient.volume_key`), and a super conductor opens it. So no host has a user's token or an account that
may read keys, and a compromised one gets the keys of the volumes that it was ordered to open.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from cryptography.fernet import InvalidToken
from oslo_config import cfg

from causeway.context import RequestContext
from causeway.errors import Forbidden
from causeway.model import tpm_secrets
from causeway.rpc.shared_secret import cipher_for

_PURPOSE = "causeway: the keys that a host may ask for"
# Hosts have Placement's account too, and could make grants with its password.
_ACCOUNTS = ("service_user",)
# Seconds. An order waits until the disks have come, which may take days.
LONGEST_ORDER = 7 * 24 * 3600
# The arguments of orders that have volumes: one, or a list.
_ARGUMENTS = ("block_devices", "block_device", "old", "new")


@dataclass(frozen=True)
class KeyGrant:
    """``tpm_key``: the id of the key of the server's TPM, and whose it is (`causeway.model.tpm_secrets`).

    ``token``: of the user; None if the system gave the order by itself.
    """

    host: str
    volume_ids: list[str]
    tpm_key: tuple[str, str] | None = None
    token: str | None = field(default=None, repr=False)


def grant_for(conf: cfg.ConfigOpts, context: RequestContext, host: str | None, order: Mapping[str, Any]) -> str | None:
    """The sealed grant for an order as it is sent; None if it has no volumes, or there is no secret to seal with."""
    volume_ids, tpm_key = sorted(_volume_ids(order)), _tpm_key(order)
    if host is None or not (volume_ids or tpm_key):
        return None
    try:
        cipher = cipher_for(conf, _PURPOSE, _ACCOUNTS)
    except cfg.NoSuchOptError:
        return None
    if cipher is None:
        return None
    return cipher.encrypt(msgspec.json.encode(KeyGrant(host, volume_ids, tpm_key, context.auth_token))).decode()


def open_grant(conf: cfg.ConfigOpts, sealed: str | None, host: str, asked_for: str) -> KeyGrant:
    """The grant that a host hands back. Raises Forbidden unless it is for this host, and for what the host asks for.

    ``asked_for``: the id of a volume, or of the key of a TPM.
    """
    cipher = cipher_for(conf, _PURPOSE, _ACCOUNTS)
    try:
        if cipher is None or sealed is None:
            raise _refused(host, asked_for, "it has no grant: set [conductor] credentials_key")
        grant = msgspec.json.decode(cipher.decrypt(sealed.encode(), ttl=LONGEST_ORDER), type=KeyGrant)
    except (InvalidToken, msgspec.MsgspecError, UnicodeError):
        raise _refused(
            host, asked_for, "its grant is not valid: API and conductors need the same [conductor] credentials_key"
        ) from None
    if grant.host != host or asked_for not in (*grant.volume_ids, *(grant.tpm_key or ())[:1]):
        raise _refused(host, asked_for, "its grant is for another host, or for other keys")
    return grant


def _volume_ids(order: Mapping[str, Any]) -> set[str]:
    found: set[str] = set()
    for name in _ARGUMENTS:
        given = order.get(name)
        for device in given if isinstance(given, list) else [given]:
            volume_id = device.get("volume_id") if isinstance(device, dict) else None
            if isinstance(volume_id, str):
                found.add(volume_id)
    return found


def _tpm_key(order: Mapping[str, Any]) -> tuple[str, str] | None:
    instance = order.get("instance")
    known = instance.get("system_metadata") if isinstance(instance, dict) else None
    if not isinstance(known, dict):
        return None
    key_id, security = tpm_secrets.key_of(known), tpm_secrets.security_of(known)
    return None if key_id is None or security is None else (key_id, security)


def _refused(host: str, asked_for: str, why: str) -> Forbidden:
    return Forbidden(f"The host was refused the key of {asked_for}.", details=f"{host}: {why}")

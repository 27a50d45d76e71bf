"""Answers hosts that ask for the key of an encrypted volume (`causeway.rpc.key_grants` says why they have to ask).

The key is read with the token of the user whose request the host carries out. An administrator, or the system, may have given
the order, and a token may have expired: then it is read with our own account, which the key manager must allow.
"""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.model.volume_keys import VolumeKey
from causeway.rpc.key_grants import open_grant
from causeway.rpc.sealed_keys import seal_to
from causeway.running.services import ConductorServices


def answer(
    services: ConductorServices, context: RequestContext, host: str, volume_id: str, public_key: str
) -> VolumeKey:
    """Raises Forbidden, VolumeNotFound, KeyNotFound, ServiceRefused, ServiceFailed."""
    grant = open_grant(services.conf, context.key_grant, host, volume_id)
    values = context.without_tokens() | {"auth_token": grant.token}
    user: RequestContext = RequestContext.from_dict(values, overwrite=False)
    encryption = services.volumes.encryption_of(user, volume_id)
    if encryption is None or encryption.key_id is None:
        raise errors.ServiceRefused(
            f"Volume {volume_id} is encrypted, but the volume service names no key of it.",
            details=f"asked by {host}; see `openstack volume type show --encryption-type`",
        )
    key = services.keys.read_key(user, encryption.key_id)
    # As everywhere in OpenStack: the passphrase is the key in hexadecimal digits.
    return VolumeKey(encryption.provider, seal_to(public_key, key.hex()))

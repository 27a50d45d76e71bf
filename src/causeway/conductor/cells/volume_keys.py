"""Answers hosts that ask for the key of an encrypted volume (`causeway.rpc.key_grants` says why they have to ask).

The key is read with the token of the user whose request the host carries out. An administrator, or the system, may have given
the order, and a token may have expired: then it is read with our own account, which the key manager must allow.
"""

from __future__ import annotations

from causeway import errors
from causeway.clients.rights import OF_SERVER, SERVICE
from causeway.context import RequestContext
from causeway.hardware.firmware import TpmSecurity
from causeway.model.volume_keys import SWTPM, VolumeKey
from causeway.rpc.key_grants import KeyGrant, open_grant
from causeway.rpc.sealed_keys import seal_to
from causeway.running.services import ConductorServices


def answer(
    services: ConductorServices, context: RequestContext, host: str, volume_id: str, public_key: str
) -> VolumeKey:
    """Raises Forbidden, VolumeNotFound, KeyNotFound, ServiceRefused, ServiceFailed."""
    grant = open_grant(services.conf, context.key_grant, host, volume_id)
    user = _user_of(context, grant)
    encryption = services.volumes.encryption_of(user, volume_id)
    if encryption is None or encryption.key_id is None:
        raise errors.ServiceRefused(
            f"Volume {volume_id} is encrypted, but the volume service names no key of it.",
            details=f"asked by {host}; see `openstack volume type show --encryption-type`",
        )
    key = services.keys.read_key(user, encryption.key_id)
    # As everywhere in OpenStack: the passphrase is the key in hexadecimal digits.
    return VolumeKey(encryption.provider, seal_to(public_key, key.hex()))


def answer_for_tpm(
    services: ConductorServices, context: RequestContext, host: str, key_id: str, public_key: str
) -> VolumeKey:
    """The same for the state of a server's TPM."""
    grant = open_grant(services.conf, context.key_grant, host, key_id)
    is_ours = grant.tpm_key is not None and grant.tpm_key[1] == TpmSecurity.DEPLOYMENT
    user = _user_of(context, grant)
    key = services.keys.read_key(user, key_id, called_as=SERVICE if is_ours else OF_SERVER)
    return VolumeKey(SWTPM, seal_to(public_key, key.hex()))


def _user_of(context: RequestContext, grant: KeyGrant) -> RequestContext:
    values = context.without_tokens() | {"auth_token": grant.token}
    found: RequestContext = RequestContext.from_dict(values, overwrite=False)
    return found

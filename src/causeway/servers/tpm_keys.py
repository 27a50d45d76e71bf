"""Makes the key of a server's TPM with the server, and deletes it with it. `causeway.compute.guests.tpm_keys` uses it."""

from __future__ import annotations

import logging

from causeway import errors
from causeway.clients.rights import OF_SERVER, ONLY_USER, SERVICE
from causeway.context import RequestContext
from causeway.hardware import firmware
from causeway.hardware.firmware import TpmSecurity
from causeway.model import tpm_secrets
from causeway.model.instance import Instance
from causeway.running.services import ConductorServices

LOG = logging.getLogger(__name__)


def make(services: ConductorServices, context: RequestContext, instance: Instance) -> bool:
    """Makes the key of a new server, if its TPM shall have one, and notes it in the server. Returns whether there is a new note.

    It belongs to the user (with their token, or not at all), or to us. An earlier attempt's key is taken.
    """
    tpm = firmware.of_instance(instance).tpm
    if tpm is None or not tpm.is_encrypted or tpm_secrets.key_of(instance.system_metadata) is not None:
        return False
    key_id = services.keys.make_key(
        context,
        f"the key of the TPM of server {instance.uuid}",
        called_as=ONLY_USER if tpm.security is TpmSecurity.USER else SERVICE,
    )
    instance.system_metadata = tpm_secrets.with_key(instance.system_metadata, key_id, tpm.security)
    return True


def delete(services: ConductorServices, context: RequestContext, instance: Instance) -> None:
    """Deletes the key, if there is one. One that nobody lets us delete stays: what it encrypted is deleted."""
    key_id = tpm_secrets.key_of(instance.system_metadata)
    if key_id is None:
        return
    is_ours = tpm_secrets.security_of(instance.system_metadata) == TpmSecurity.DEPLOYMENT
    try:
        services.keys.delete_key(context, key_id, called_as=SERVICE if is_ours else OF_SERVER)
    except (errors.Forbidden, errors.ServiceRefused) as refusal:
        LOG.warning(
            "Key %s of the TPM of server %s is not deleted: %s %s",
            key_id,
            instance.uuid,
            refusal.message,
            refusal.details,
        )

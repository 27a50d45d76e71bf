"""The key of the state of a server's TPM, for the time in which its guest is made: asked for like that of a volume."""

from __future__ import annotations

from causeway.compute.guests import volume_keys
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.hardware import firmware
from causeway.model import tpm_secrets
from causeway.model.instance import Instance
from causeway.model.volume_keys import VolumeKey


def check(host: Host, context: RequestContext, instance: Instance) -> None:
    """Raises DecryptionRefused if this host would not be given the key."""
    _passphrase(host, context, instance)


def hold(host: Host, context: RequestContext, instance: Instance) -> None:
    """From now on the hypervisor has the key, until the guest is destroyed. No TPM, or not encrypted: nothing happens.

    Raises DecryptionRefused.
    """
    passphrase = _passphrase(host, context, instance)
    if passphrase is not None:
        host.driver.hold_tpm_key(instance, passphrase)


def _passphrase(host: Host, context: RequestContext, instance: Instance) -> str | None:
    key_id = tpm_secrets.key_of(instance.system_metadata)
    if key_id is None or firmware.of_instance(instance).tpm is None:
        return None

    def ask(public_key: str) -> VolumeKey:
        return host.conductor.tpm_key(context, host=host.name, key_id=key_id, public_key=public_key)

    return volume_keys.asked(f"The TPM of server {instance.uuid}", ask)[1]

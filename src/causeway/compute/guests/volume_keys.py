"""Keys of encrypted volumes, for the time in which a guest is made or changed.

A host has no account that may read keys. It asks its cell's conductor, with the grant that its order has
(`causeway.rpc.key_grants`), and hands the key to its hypervisor, which keeps it in memory.
"""

from __future__ import annotations

from collections.abc import Callable

from causeway import errors
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.volume_keys import Passphrase, VolumeKey
from causeway.rpc.sealed_keys import KeyQuestion


def check(host: Host, context: RequestContext, device: BlockDevice) -> None:
    """Raises DecryptionRefused if this host could not decrypt the volume, or would not be given its key."""
    if device.is_encrypted:
        _passphrase(host, context, device)


def hold(host: Host, context: RequestContext, device: BlockDevice) -> None:
    """From now on the hypervisor has the key of the volume, until the volume is disconnected. Not encrypted: nothing happens.

    Raises DecryptionRefused like `check`.
    """
    if device.is_encrypted:
        host.driver.hold_volume_key(device, _passphrase(host, context, device))


def _passphrase(host: Host, context: RequestContext, device: BlockDevice) -> Passphrase:
    volume_id = str(device.volume_id)

    def ask(public_key: str) -> VolumeKey:
        return host.conductor.volume_key(context, host=host.name, volume_id=volume_id, public_key=public_key)

    provider, text = asked(f"Volume {volume_id}", ask)
    host.driver.check_volume_provider(provider)
    return Passphrase(provider, text)


def asked(what: str, ask: Callable[[str], VolumeKey]) -> tuple[str, str]:
    """(provider, passphrase) of what is encrypted. Raises DecryptionRefused if this host is not given the key."""
    question = KeyQuestion()
    try:
        answer = ask(question.public)
    except (errors.NoSuchMethod, errors.Forbidden, errors.NotFound, errors.ServiceRefused) as refusal:
        raise errors.DecryptionRefused(
            f"{what} is encrypted, and its host is not given the key: {refusal.message}", details=refusal.details
        ) from refusal
    return answer.provider, question.open(answer.sealed)

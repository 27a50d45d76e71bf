"""The passphrases of encrypted volumes, as secrets of libvirt: a guest's definition names a secret, and QEMU gets the passphrase.

A secret has the id of its volume. It is ephemeral (in libvirtd's memory only) and private (nobody can read it there), and is
deleted when the volume is disconnected. A libvirtd that was restarted has none: each start of a guest defines it again.
"""

from __future__ import annotations

import logging
from typing import Any
from xml.etree import ElementTree as ET

import libvirt

from causeway.errors import DecryptionRefused, GuestFailed
from causeway.model.volume_keys import Passphrase
from causeway.virt.libvirt.connection import Connection

LOG = logging.getLogger(__name__)

LUKS = "luks"
# What Cinder called it before.
_FORMER_NAMES = frozenset(
    {
        "LuksEncryptor",
        "nova.volume.encryptors.luks.LuksEncryptor",
        "os_brick.encryptors.luks.LuksEncryptor",
    }
)


def check_provider(provider: str) -> None:
    """Raises `DecryptionRefused` for what QEMU can't decrypt by itself: LUKS2, plain dm-crypt, and what nobody knows."""
    if provider != LUKS and provider not in _FORMER_NAMES:
        raise DecryptionRefused(
            f"Volumes with the encryption provider '{provider}' can't be attached to guests: QEMU decrypts only LUKS 1.",
            details=f"give the volume type the provider '{LUKS}'",
        )


class VolumeSecrets:
    """Of one host."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def hold(self, volume_id: str, passphrase: Passphrase) -> None:
        """From now on libvirt has the passphrase. Raises `GuestFailed`."""
        check_provider(passphrase.provider)
        self._define(_xml(volume_id, "volume", "volume", _usage(volume_id)), passphrase.text, f"volume {volume_id}")

    def hold_tpm(self, uuid: str, key_id: str, passphrase: str) -> None:
        """The same for the state of a server's TPM: the secret has the id of the key."""
        self._define(_xml(key_id, "vtpm", "name", _usage_of_tpm(uuid)), passphrase, f"the TPM of guest {uuid}")

    def _define(self, xml: str, passphrase: str, whose: str) -> None:
        def define(hypervisor: Any) -> None:
            hypervisor.secretDefineXML(xml).setValue(passphrase.encode())

        self._connection.call(f"take the key of {whose}", define, again=True)

    def discard(self, volume_id: str) -> None:
        """Never fails: a secret that stays is in libvirtd's memory only, and is overwritten."""
        self._discard(libvirt.VIR_SECRET_USAGE_TYPE_VOLUME, _usage(volume_id))

    def discard_tpm(self, uuid: str) -> None:
        """The same for the TPM of a guest."""
        self._discard(libvirt.VIR_SECRET_USAGE_TYPE_VTPM, _usage_of_tpm(uuid))

    def _discard(self, kind: int, usage: str) -> None:
        def delete(hypervisor: Any) -> None:
            try:
                secret = hypervisor.secretLookupByUsage(kind, usage)
            except libvirt.libvirtError as error:
                if error.get_error_code() != libvirt.VIR_ERR_NO_SECRET:
                    raise
            else:
                secret.undefine()

        try:
            self._connection.call(f"discard the secret {usage}", delete, again=True)
        except GuestFailed as failure:
            LOG.warning("libvirt keeps the secret %s: %s %s", usage, failure.message, failure.details)


def _xml(secret_id: str, kind: str, tag: str, usage: str) -> str:
    """``kind``: libvirt's type of the usage, whose name is in the element ``tag``."""
    secret = ET.Element("secret", ephemeral="yes", private="yes")
    ET.SubElement(secret, "uuid").text = secret_id
    ET.SubElement(ET.SubElement(secret, "usage", type=kind), tag).text = usage
    return ET.tostring(secret, encoding="unicode")


def _usage_of_tpm(uuid: str) -> str:
    return f"causeway tpm {uuid}"


def _usage(volume_id: str) -> str:
    """libvirt allows it only once, and administrators see it in `virsh secret-list`."""
    return f"causeway volume {volume_id}"

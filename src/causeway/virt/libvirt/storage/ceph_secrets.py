"""The keys of accounts in Ceph, which libvirt keeps as secrets: a guest's definition names a secret, and QEMU gets its key.

The host has a secret, or it is made here from a keyring: one that the volume service sends (Cinder does only if it is made to),
or the host's own, ``/etc/ceph/CLUSTER.client.ACCOUNT.keyring``. A key is in no error and no log.
"""

from __future__ import annotations

import base64
import binascii
import configparser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import libvirt

from causeway.errors import GuestFailed
from causeway.virt.libvirt.connection import Connection

CEPH = Path("/etc/ceph")
# Secrets with such a usage were made here.
_OURS = "causeway client."


class CephSecrets:
    """Of one host. ``directory``: where Ceph's files are."""

    def __init__(self, connection: Connection, directory: Path = CEPH) -> None:
        self._connection = connection
        self._directory = directory

    def ensure(self, secret_uuid: str, user: str, key: str | None) -> str | None:
        """From now on libvirt has the secret. Returns its key; None: only libvirt may know it.

        ``key``: what a keyring has for the account (`key_of`); None: no keyring. Raises `GuestFailed` if libvirt has no such
        secret and there is no keyring either.
        """
        return self._connection.call(
            f"say whether it has secret {secret_uuid}", lambda to: _ensure(to, secret_uuid, user, key), again=True
        )

    def key_of(self, user: str, cluster: str, sent: str | None) -> str | None:
        """The account's key in the keyring that was ``sent``, or in the host's own; None: neither has it.

        Raises `GuestFailed` if the keyring can't be read.
        """
        if sent:
            return _parsed(sent, user)
        return self.key_in(self.keyring(user, cluster), user)

    def key_in(self, path: Path, user: str) -> str | None:
        """The account's key in a keyring of this host. Raises `GuestFailed` if it can't be read."""
        try:
            return _parsed(path.read_text(errors="replace"), user)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise GuestFailed(f"The keyring of Ceph's account {user} can't be read.", details=str(error)) from error

    def keyring(self, user: str, cluster: str) -> Path:
        return self._directory / f"{Path(cluster).name}.client.{Path(user).name}.keyring"


def _ensure(hypervisor: Any, secret_uuid: str, user: str, key: str | None) -> str | None:
    try:
        secret = hypervisor.secretLookupByUUIDString(secret_uuid)
    except libvirt.libvirtError as error:
        if error.get_error_code() != libvirt.VIR_ERR_NO_SECRET:
            raise
        if key is None:
            raise GuestFailed(
                f"libvirt has no secret {secret_uuid} with the key of Ceph's account {user}, and the host has no keyring of it.",
                details=f"define the secret, or put the keyring into {CEPH}",
            ) from error
        secret = hypervisor.secretDefineXML(_xml(secret_uuid, user))
    usage = str(secret.usageID())
    if usage.startswith(_OURS):
        if usage != _usage(secret_uuid, user):
            # A secret has one key: it would be overwritten each time. Cinder without rbd_secret_uuid says its Ceph's id.
            raise GuestFailed(
                f"libvirt's secret {secret_uuid} has the key of another account of Ceph than {user}: each needs its own secret"
                " (rbd_secret_uuid in cinder.conf).",
                details=usage,
            )
        if key is not None:
            # Whoever defined it may have died before it had its value.
            secret.setValue(base64.b64decode(key))
        return key
    try:
        return key or base64.b64encode(secret.value()).decode()
    except libvirt.libvirtError as error:
        if error.get_error_code() == libvirt.VIR_ERR_INVALID_SECRET:
            # It is private.
            return None
        if error.get_error_code() == libvirt.VIR_ERR_NO_SECRET:
            raise GuestFailed(
                f"libvirt's secret {secret_uuid} has no value, which must be the key of Ceph's account {user}."
            ) from error
        raise


def _xml(secret_uuid: str, user: str) -> str:
    secret = ET.Element("secret", ephemeral="no", private="yes")
    ET.SubElement(secret, "uuid").text = secret_uuid
    usage = ET.SubElement(secret, "usage", type="ceph")
    ET.SubElement(usage, "name").text = _usage(secret_uuid, user)
    return ET.tostring(secret, encoding="unicode")


def _usage(secret_uuid: str, user: str) -> str:
    """libvirt allows it only once."""
    return f"{_OURS}{user} {secret_uuid}"


def _parsed(keyring: str, user: str) -> str | None:
    """The key of an account; None: the keyring has no such account. Raises `GuestFailed` for what is no keyring."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        # Ceph indents what is below a section.
        parser.read_string("\n".join(line.strip() for line in keyring.splitlines()))
        key = parser.get(f"client.{user}", "key", fallback=None)
        if key is None:
            return None
        base64.b64decode(key, validate=True)
    except (configparser.Error, binascii.Error, ValueError):
        # Their texts have parts of the keyring.
        raise GuestFailed(f"The keyring of Ceph's account {user} is none that Ceph writes.") from None
    return key

"""A host's libvirt with secrets, as far as volumes in Ceph need it, and the tool that opens their images."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from xml.etree import ElementTree as ET

import libvirt

from causeway.errors import GuestFailed
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.storage.ceph_secrets import CephSecrets
from causeway.virt.libvirt.storage.ceph_volumes import CephAccount, CephVolumes
from causeway.virt.libvirt.storage.shares import Shares
from causeway.virt.libvirt.storage.volume_secrets import VolumeSecrets

SECRET = "4a1e6a26-0e4e-4c5e-9d4f-000000000001"
KEY = "AQD1kwxrtCtdGhAAZ/DQcOUNHH50l0vdKPrmZQ=="
KEYRING = f'[client.cinder]\n\tkey = {KEY}\n\tcaps mon = "profile rbd"\n'
#: of Cinder 29's RBD driver
DATA: dict[str, Any] = {
    "name": "volumes/volume-1",
    "hosts": ["10.0.0.1", "[fd00::1]"],
    "ports": ["6789", "6790"],
    "cluster_name": "ceph",
    "auth_enabled": True,
    "auth_username": "cinder",
    "secret_type": "ceph",
    "secret_uuid": SECRET,
    "discard": True,
    "qos_specs": None,
    "access_mode": "rw",
    "encrypted": False,
    "cacheable": False,
}


def error(code: int) -> libvirt.libvirtError:
    found = libvirt.libvirtError("libvirt")
    found.err = (code, 0, "no", 0, "", None, None, -1, -1)
    return found


@dataclass
class Secret:
    usage: str
    is_private: bool
    content: bytes | None = None
    undefine: Callable[[], Any] | None = None

    def usageID(self) -> str:
        return self.usage

    def setValue(self, value: bytes) -> None:
        self.content = value

    def value(self) -> bytes:
        if self.is_private:
            raise error(libvirt.VIR_ERR_INVALID_SECRET)
        if self.content is None:
            raise error(libvirt.VIR_ERR_NO_SECRET)
        return self.content


@dataclass
class CephHost:
    """``folder``: instead of /etc/ceph. ``opened``: the options of images that were opened; ``opens`` may refuse."""

    folder: Path
    secrets: dict[str, Secret] = field(default_factory=dict)
    opened: list[dict[str, Any]] = field(default_factory=list)
    opens: Callable[[], None] = lambda: None

    def secretLookupByUUIDString(self, uuid: str) -> Secret:
        if uuid not in self.secrets:
            raise error(libvirt.VIR_ERR_NO_SECRET)
        return self.secrets[uuid]

    def secretLookupByUsage(self, kind: int, usage: str) -> Secret:
        assert kind == libvirt.VIR_SECRET_USAGE_TYPE_VOLUME
        uuid = next((uuid for uuid, secret in self.secrets.items() if secret.usage == usage), None)
        if uuid is None:
            raise error(libvirt.VIR_ERR_NO_SECRET)
        self.secrets[uuid].undefine = lambda: self.secrets.pop(uuid)
        return self.secrets[uuid]

    def secretDefineXML(self, xml: str) -> Secret:
        secret = ET.fromstring(xml)
        usage = secret.find("usage")
        assert usage is not None
        # A volume's key is not to be on any disk.
        assert secret.get("ephemeral") == ("yes" if usage.get("type") == "volume" else "no")
        made = self.secrets[str(secret.findtext("uuid"))] = Secret(str(usage[0].text), secret.get("private") == "yes")
        return made

    def call(self, _what: str, function: Callable[[Any], Any], **_options: Any) -> Any:
        return function(self)

    def has_secret(self, *, is_private: bool) -> None:
        """The operator's own."""
        self.secrets[SECRET] = Secret("client.cinder secret", is_private, base64.b64decode(KEY))

    def has_keyring(self, text: str = KEYRING) -> None:
        (self.folder / "ceph.client.cinder.keyring").write_text(text)

    def volumes(self, account: CephAccount | None = None) -> CephVolumes:
        return CephVolumes(CephSecrets(cast(Connection, self), self.folder), account or CephAccount())

    def volume_secrets(self) -> VolumeSecrets:
        return VolumeSecrets(cast(Connection, self))

    def run(self, *words: str | Path, pass_fds: tuple[int, ...] = (), **_options: Any) -> str:
        """In place of `commands.run`."""
        texts = [str(word) for word in words]
        assert not any(KEY in text for text in texts)
        options = json.loads(texts[-1].removeprefix("json:"))
        if options.get("conf"):
            raise GuestFailed("'qemu-img' failed.", details="error reading conf file /nonexistent")
        self.opens()
        if "key-secret" in options:
            (handle,) = pass_fds
            options["key"] = Path(f"/proc/self/fd/{handle}").read_text()
        self.opened.append(options)
        return json.dumps({"virtual-size": 1 << 30})


def no_ceph() -> CephVolumes:
    """Of a host without it."""
    return CephHost(Path("/nonexistent")).volumes()


def no_shares(folder: Path) -> Shares:
    return Shares(folder, lambda _name: set())


def no_secrets() -> VolumeSecrets:
    return CephHost(Path("/nonexistent")).volume_secrets()

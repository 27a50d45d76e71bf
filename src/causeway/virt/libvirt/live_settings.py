"""What a host's configuration says of live migrations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oslo_config import cfg


@dataclass
class LiveSettings:
    """What a host's configuration says of itself in live migrations; how each is done comes with it (`LiveOptions`).

    ``address``: where other hypervisors reach this one. ``uri``: of this host's libvirtd for others, with ``%s`` for the address.
    ``reachable_here``: that works from this process, too, so it can be tried.
    ``inside``: words before a command that run it where this host's libvirtd runs.
    ``downtime``: milliseconds that a guest may stand still at the end. ``tls``: always, whatever a migration's options say.
    ``certificates``: QEMU needs its own, for what travels between hypervisors.
    ``trust_emulator``: guests without KVM run on while their memory travels, whatever QEMU loses of it (`dirty_memory`).
    """

    address: str = "127.0.0.1"
    uri: str | None = None
    scheme: str | None = None
    reachable_here: bool = True
    inside: Callable[[], list[str]] = list
    downtime: int = 500
    tls: bool = False
    certificates: bool = False
    trust_emulator: bool = False

    def control_uri(self) -> str:
        """This host's libvirtd, as others reach it."""
        template = self.uri or f"qemu+{self.scheme or 'tcp'}://%s/system"
        return template.replace("%s", in_uri(self.address))


def from_options(conf: cfg.ConfigOpts) -> LiveSettings:
    return LiveSettings(
        address=conf.libvirt.live_migration_inbound_addr or conf.my_ip,
        uri=conf.libvirt.live_migration_uri,
        scheme=conf.libvirt.live_migration_scheme,
        downtime=conf.libvirt.live_migration_downtime,
        certificates=conf.libvirt.live_migration_with_native_tls,
    )


def in_uri(address: str) -> str:
    return f"[{address}]" if ":" in address else address

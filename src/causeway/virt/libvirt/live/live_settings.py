"""The options of a host for live migrations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from oslo_config import cfg


@dataclass
class LiveSettings:
    """The options of a host for all its live migrations. Each migration has options of its own (`LiveOptions`).

    ``address``: where other hypervisors reach this one. ``uri``: the URI of this host's libvirtd for other hosts, with ``%s`` for
    the address. ``reachable_here``: this process can reach it there too, and can try. ``inside``: returns the words to put before
    a command so that it runs where this host's libvirtd runs. ``downtime``: milliseconds that a guest may stand still at the end.
    ``tls``: all migrations use TLS, whatever their options say. ``certificates``: QEMU needs certificates of its own.
    ``trust_emulator``: guests without KVM run while their memory travels, although QEMU may miss writes (`dirty_memory`).
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
        """The URI at which other hosts reach this host's libvirtd."""
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
    """The address as it is written in a URI."""
    return f"[{address}]" if ":" in address else address

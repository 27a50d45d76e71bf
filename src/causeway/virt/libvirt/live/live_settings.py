"""The options of a host for live migrations."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass

from oslo_config import cfg

from causeway.errors import GuestRefused

_HOST_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


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
        return self.uri_of(self.address)

    def uri_of(self, address: str) -> str:
        """The URI at which this host reaches the libvirtd at ``address``, another host's.

        Made from this host's options: libvirt runs the command that a URI names, so no URI of another host is used. Raises
        `GuestRefused` for what is no address.
        """
        template = self.uri or f"qemu+{self.scheme or 'tcp'}://%s/system"
        return template.replace("%s", in_uri(checked(address)))


def from_options(conf: cfg.ConfigOpts) -> LiveSettings:
    return LiveSettings(
        address=conf.libvirt.live_migration_inbound_addr or conf.my_ip,
        uri=conf.libvirt.live_migration_uri,
        scheme=conf.libvirt.live_migration_scheme,
        downtime=conf.libvirt.live_migration_downtime,
        certificates=conf.libvirt.live_migration_with_native_tls,
    )


def checked(address: str) -> str:
    """The address, which another host said. Raises `GuestRefused` if it is neither an IP address nor a host name."""
    try:
        # The zone behind an IPv6 address may be any text.
        ipaddress.ip_address("" if "%" in address else address)
    except ValueError:
        if _HOST_NAME.fullmatch(address) is None:
            raise GuestRefused(
                "Another host names an address for live migrations that is none.", details=repr(address)[:200]
            ) from None
    return address


def in_uri(address: str) -> str:
    """The address as it is written in a URI."""
    return f"[{address}]" if ":" in address else address

"""What a host's configuration says of live migrations, and what the host itself should be set to."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

LOG = logging.getLogger(__name__)

# TCP's: 8 are about a minute and a half, 15 a quarter of an hour.
_MOST_RETRIES = 8


@dataclass
class LiveSettings:
    """What a host's configuration says of itself in live migrations; how each is done comes with it (`LiveOptions`).

    ``address``: where other hypervisors reach this one. ``uri``: of this host's libvirtd for others, with ``%s`` for the address.
    ``reachable_here``: that works from this process, too, so it can be tried.
    ``downtime``: milliseconds that a guest may stand still at the end. ``tls``: always, whatever a migration's options say.
    """

    address: str = "127.0.0.1"
    uri: str | None = None
    scheme: str | None = None
    reachable_here: bool = True
    downtime: int = 500
    tls: bool = False

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
    )


def warn_of_patient_network(path: Path = Path("/proc/sys/net/ipv4/tcp_retries2")) -> None:
    """QEMU waits for a peer that died as long as TCP does, and the guest of a live migration stands still meanwhile."""
    try:
        retries = int(path.read_text())
    except (OSError, ValueError):
        return
    if retries > _MOST_RETRIES:
        LOG.warning(
            "net.ipv4.tcp_retries2 is %d, 4 is better: when the network dies, guests that are migrated stand still for minutes",
            retries,
        )


def in_uri(address: str) -> str:
    return f"[{address}]" if ":" in address else address

"""What a host's configuration says of live migrations, and what the host itself should be set to."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from causeway.virt.live import LiveOptions

LOG = logging.getLogger(__name__)

# TCP's: 8 are about a minute and a half, 15 a quarter of an hour.
_MOST_RETRIES = 8


@dataclass
class LiveSettings:
    """What the host's configuration says of live migrations ([libvirt] live_migration_*).

    ``address``: where other hypervisors reach this one. ``uri``: of this host's libvirtd for others, with ``%s`` for the address.
    ``reachable_here``: that works from this process, too, so it can be tried.
    ``downtime``: milliseconds that a guest may stand still at the end. The others are done with every migration from this host.
    """

    address: str = "127.0.0.1"
    uri: str | None = None
    scheme: str | None = None
    reachable_here: bool = True
    downtime: int = 500
    bandwidth: int = 0
    post_copy: bool = False
    auto_converge: bool = False
    tls: bool = False

    def control_uri(self) -> str:
        """This host's libvirtd, as others reach it."""
        template = self.uri or f"qemu+{self.scheme or ('tls' if self.tls else 'tcp')}://%s/system"
        return template.replace("%s", in_uri(self.address))

    def applied(self, options: LiveOptions) -> LiveOptions:
        return LiveOptions(
            bandwidth=options.bandwidth or self.bandwidth,
            post_copy=options.post_copy or self.post_copy,
            auto_converge=options.auto_converge or self.auto_converge,
            tls=options.tls or self.tls,
            block_migration=options.block_migration,
        )


def from_options(conf: cfg.ConfigOpts) -> LiveSettings:
    said = conf.libvirt
    return LiveSettings(
        address=said.live_migration_inbound_addr or conf.my_ip,
        uri=said.live_migration_uri,
        scheme=said.live_migration_scheme,
        downtime=said.live_migration_downtime,
        bandwidth=said.live_migration_bandwidth,
        post_copy=said.live_migration_permit_post_copy,
        auto_converge=said.live_migration_permit_auto_converge,
        tls=said.live_migration_with_native_tls,
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

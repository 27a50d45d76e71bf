"""[libvirt]: the hypervisor of compute_driver libvirt."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "libvirt": [
        cfg.StrOpt("connection_uri", default="qemu:///system", help="The libvirtd of `causeway compute`."),
        cfg.StrOpt(
            "virt_type",
            default="auto",
            choices=["auto", "kvm", "qemu"],
            help="auto: KVM if a probe boot shows that it works. kvm needs a processor with virtualisation that this host"
            " may use; qemu emulates, slowly, everywhere.",
        ),
        cfg.StrOpt(
            "live_migration_inbound_addr",
            help="Where the hypervisors of other hosts reach this one in live migrations; none: [DEFAULT] my_ip.",
        ),
        cfg.StrOpt(
            "live_migration_scheme",
            help="How other hosts' libvirtds talk to this one: tls, tcp or ssh. None: tls with live_migration_with_native_tls,"
            " else tcp.",
        ),
        cfg.StrOpt(
            "live_migration_uri",
            help="The libvirtd of this host as others are to reach it, with %s for live_migration_inbound_addr; goes before"
            " live_migration_scheme. Example: qemu+tls://%s/system?pkipath=/etc/libvirt/pki",
        ),
        cfg.BoolOpt(
            "live_migration_with_native_tls",
            default=False,
            help="Memory and disks travel encrypted, between hosts that prove who they are by certificates.",
        ),
        cfg.IntOpt(
            "live_migration_bandwidth", default=0, min=0, help="MiB/s that one live migration may take; 0: no limit."
        ),
        cfg.IntOpt(
            "live_migration_downtime",
            default=500,
            min=100,
            help="Milliseconds that a guest may stand still at the end of its live migration.",
        ),
        cfg.BoolOpt(
            "live_migration_permit_post_copy",
            default=False,
            help="A live migration that is forced to its end goes on at the target with its memory still on its way. A guest is"
            " lost if either host or the network dies then.",
        ),
        cfg.BoolOpt(
            "live_migration_permit_auto_converge",
            default=False,
            help="Guests that write more than travels are slowed down; not together with live_migration_permit_post_copy.",
        ),
    ]
}

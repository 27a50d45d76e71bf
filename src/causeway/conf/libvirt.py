"""[libvirt]: the hypervisor of compute_driver libvirt."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "libvirt": [
        cfg.StrOpt(
            "virt_type",
            default="kvm",
            choices=["kvm", "qemu"],
            help="kvm needs a processor with virtualisation that this host may use; qemu emulates, slowly, everywhere.",
        ),
        cfg.StrOpt("connection_uri", default="", help="URI of libvirt; empty: the one that fits virt_type."),
    ]
}

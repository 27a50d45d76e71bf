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
    ]
}

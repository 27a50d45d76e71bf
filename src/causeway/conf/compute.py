"""Options of [DEFAULT] that a compute host reads."""

from __future__ import annotations

import socket

from oslo_config import cfg
from oslo_config.cfg import Opt
from oslo_utils import netutils

from causeway.model.image import BOOTABLE_FORMATS


def _ratio(resource: str, initial: float, inventory: str) -> list[Opt]:
    return [
        cfg.FloatOpt(
            f"{resource}_allocation_ratio",
            min=0.0,
            help=f"Allocation ratio of the host's {inventory} inventory. Not set or 0: the initial ratio.",
        ),
        cfg.FloatOpt(
            f"initial_{resource}_allocation_ratio",
            default=initial,
            min=0.0,
            help=f"Allocation ratio of {inventory} where {resource}_allocation_ratio is not set.",
        ),
    ]


OPTS: dict[str, list[Opt]] = {
    "DEFAULT": [
        cfg.StrOpt(
            "state_path", default="/var/lib/causeway", help="The directory below which services keep their state."
        ),
        cfg.StrOpt(
            "instances_path",
            sample_default="$state_path/hosts/<host>/instances",
            help="Where a libvirt host keeps its guests' folders and disks: an absolute path, to a folder that no other host has."
            " A host that takes over the guests of Nova on its machine needs $state_path/instances, with Nova's state_path."
            " Guests that exist are looked for there, so it must not change while the host has guests.",
        ),
        cfg.StrOpt(
            "host",
            default=socket.gethostname(),
            sample_default="<this machine's host name>",
            help="The name of this host; it must be unique over all cells.",
        ),
        cfg.IPOpt(
            "my_ip",
            default=netutils.get_my_ipv4(),
            sample_default="<this machine's address>",
            help="The address of this host in the network of its cell's hosts. Disks of servers that are resized or migrated"
            " inside the cell go over it, from host to host. Nothing else should have access to that network, unless"
            " disk_transfer_tls is required.",
        ),
        cfg.PortOpt(
            "disk_transfer_port",
            default=0,
            help="The port on my_ip from which other hosts of the cell fetch disks; 0: any that is free.",
        ),
        cfg.FloatOpt(
            "disk_transfer_patience",
            default=60.0,
            min=0.0,
            help="Seconds without a byte from the other host after which the transfer of a disk is abandoned.",
        ),
        cfg.StrOpt(
            "disk_transfer_tls",
            default="off",
            choices=[
                ("off", "disks travel unencrypted, over HTTP"),
                ("optional", "while hosts are changed: disks travel unencrypted, hosts that require TLS get it"),
                ("required", "only with TLS, between hosts that show each other a certificate"),
            ],
            help="Whether what goes from host to host when servers move (disks, and memory unless hypervisors hand it over) is"
            " encrypted. Set it to optional on all hosts of all cells before the first one requires it.",
        ),
        cfg.StrOpt(
            "disk_transfer_pki_dir",
            default="/etc/pki/qemu",
            help="The folder of this host's certificates for disk_transfer_tls, named as QEMU wants them for live migrations:"
            " ca-cert.pem, server-cert.pem (for the address my_ip), server-key.pem, client-cert.pem, client-key.pem. Files that"
            " are replaced are read again with the next connection.",
        ),
        cfg.IntOpt(
            "certificate_warning_days",
            default=30,
            min=0,
            help="Days before its end from which on a certificate of this host is announced: in the log, every day, and in"
            " `causeway manage status`. It counts for the certificates of disk_transfer_tls and of live migrations.",
        ),
        cfg.StrOpt(
            "compute_driver",
            default="libvirt",
            choices=["libvirt", "libvirt.LibvirtDriver", "simulated"],
            help="The hypervisor of `causeway compute`: real guests (libvirt.LibvirtDriver is Nova's name for it), or files that"
            " stand for them (for tests).",
        ),
        cfg.IntOpt(
            "resize_confirm_window",
            default=0,
            min=0,
            help="Seconds after which a resize that was neither confirmed nor reverted is confirmed; 0: never.",
        ),
        cfg.IntOpt(
            "shelved_offload_time",
            default=0,
            min=-1,
            help="Seconds after which a shelved server is offloaded from its host; 0: at once; -1: never.",
        ),
        cfg.IntOpt(
            "shelved_poll_interval",
            default=3600,
            min=1,
            help="Seconds between two checks for servers that were shelved long enough to be offloaded from their hosts.",
        ),
        cfg.ListOpt(
            "non_inheritable_image_properties",
            default=["cache_in_nova", "bittorrent"],
            help="Image properties that images of servers do not inherit from the server's image.",
        ),
        cfg.IntOpt(
            "reimage_timeout_per_gb",
            default=20,
            min=1,
            help="Seconds for each GiB of an image that the volume service has to write it to a root volume (rebuild).",
        ),
        cfg.IntOpt(
            "vif_plugging_timeout",
            default=300,
            min=0,
            help="Seconds to wait for the network service's message that a port is plugged; 0: do not wait.",
        ),
        cfg.BoolOpt(
            "vif_plugging_is_fatal",
            default=True,
            help="Fail if a port was not plugged in time; if false, the guest starts all the same.",
        ),
        cfg.IntOpt(
            "shutdown_timeout",
            default=60,
            min=0,
            help="Seconds that a guest has to shut down cleanly before it is powered off. The image property"
            " os_shutdown_timeout overrides it.",
        ),
        cfg.StrOpt(
            "default_ephemeral_format",
            default="",
            help="The file system of new ephemeral disks: ext4, vfat, xfs, ... Empty: ext4, or vfat where there is no tool for"
            " it. Users may ask for another one (guest_format in block_device_mapping_v2).",
        ),
        cfg.IntOpt(
            "max_local_block_devices",
            default=3,
            min=-1,
            help="How many local disks (root, ephemeral, swap) a server may have; -1: any number.",
        ),
        cfg.IntOpt("reserved_host_memory_mb", default=512, min=0, help="MiB of memory kept for the host itself."),
        cfg.IntOpt("reserved_host_disk_mb", default=0, min=0, help="MiB of disk kept for the host itself."),
        cfg.IntOpt("reserved_host_cpus", default=0, min=0, help="CPUs kept for the host itself."),
        *_ratio("cpu", 4.0, "VCPU"),
        *_ratio("ram", 1.0, "MEMORY_MB"),
        *_ratio("disk", 1.0, "DISK_GB"),
    ],
    "compute": [
        cfg.BoolOpt(
            "live_migration_wait_for_vif_plug",
            default=True,
            help="Begin a live migration only when the network service has wired the guest's ports at its target, as far as it"
            " says so: for ports of Open vSwitch and OVN. See vif_plugging_timeout and vif_plugging_is_fatal.",
        ),
        cfg.ListOpt(
            "allowed_image_formats",
            item_type=cfg.types.String(choices=list(BOOTABLE_FORMATS)),
            default=list(BOOTABLE_FORMATS),
            help="The disk_format of images that servers boot from and are rescued with; read by the API and by computes. Hosts"
            " compare what an image is with its disk_format, and open it as nothing else. Images of other formats (vmdk, vdi,"
            " vhdx, ...) can name other files: convert them, or boot from a volume that is made from them.",
        ),
        cfg.StrOpt(
            "cpu_shared_set",
            help="The host's CPUs for guests that share them (VCPU), as in 4-12,^8,15. Not set: all, or none if there is a"
            " cpu_dedicated_set.",
        ),
        cfg.StrOpt(
            "cpu_dedicated_set",
            help="The host's CPUs for guests that have them for themselves (PCPU), as in 4-12,^8,15. Not set: none.",
        ),
    ],
    "pci": [
        cfg.MultiStrOpt(
            "device_spec",
            default=[],
            help='The host\'s PCI devices that may be given to guests, as JSON: ``{"vendor_id": "8086", "product_id":'
            ' "154d", "address": "0000:81:*"}``; further keys are properties of the devices. May be given several times.',
        ),
        cfg.MultiStrOpt(
            "alias",
            default=[],
            help='Names for PCI devices that flavors ask for (pci_passthrough:alias), as JSON: {"name": "nic",'
            ' "vendor_id": "8086", "product_id": "154d", "device_type": "type-PF", "numa_policy": "preferred"}. Read by'
            " the API and the conductor. May be given several times.",
        ),
    ],
}

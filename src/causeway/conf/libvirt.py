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
        cfg.ListOpt(
            "hw_machine_type",
            default=[],
            help="Machine types of guests whose images name none, as architecture=type; not set: x86_64=pc. A server keeps the"
            " type with which it was first started.",
        ),
        cfg.StrOpt(
            "sysinfo_serial",
            default="unique",
            choices=["none", "os", "hardware", "auto", "unique"],
            help="The serial number in the firmware of guests: of this host (os: /etc/machine-id; hardware: of its board; auto:"
            " the first of both that there is), or unique: the server's id, which it keeps wherever it moves.",
        ),
        cfg.StrOpt(
            "cpu_mode",
            choices=["host-model", "host-passthrough", "maximum", "custom", "none"],
            help="The processor that guests see; custom: the first of cpu_models that this host has. Default: host-model with"
            " KVM, the hypervisor's own without.",
        ),
        cfg.ListOpt(
            "cpu_models", default=[], help="With cpu_mode custom: models in the order in which they are preferred."
        ),
        cfg.ListOpt(
            "cpu_model_extra_flags",
            default=[],
            help="Flags of the processor that guests have (or, with a - before the name, do not have) besides those of the"
            " model.",
        ),
        cfg.BoolOpt(
            "swtpm_enabled",
            default=False,
            help="Guests may have a TPM (hw:tpm_version). Needs swtpm and swtpm_setup on the host.",
        ),
        cfg.StrOpt(
            "live_migration_inbound_addr",
            help="Where the hypervisors of other hosts reach this one in live migrations; not set: [DEFAULT] my_ip.",
        ),
        cfg.StrOpt(
            "live_migration_scheme",
            help="How this host's libvirtd and those of other hosts talk to each other: tls, tcp or ssh; not set: tcp, which does"
            " not authenticate. The same on all hosts that migrate guests to one another.",
        ),
        cfg.StrOpt(
            "live_migration_uri",
            help="The URI by which hosts reach each other's libvirtd, with %s for live_migration_inbound_addr of the one that is"
            " called; overrides live_migration_scheme. The same on all hosts that migrate guests to one another. Example: qemu+tls://%s/system?pkipath=/etc/libvirt/pki",
        ),
        cfg.StrOpt(
            "images_type",
            default="qcow2",
            choices=("default", "qcow2", "rbd"),
            help="Where new local disks of guests are: files (qcow2, default), or images in a pool of Ceph (rbd), which the host"
            " shares with all that have the pool. Disks that exist stay where they are until their server moves.",
        ),
        cfg.StrOpt(
            "shared_disks_path",
            help="A folder that several hosts mount at the same path, such as one of NFS, with locks that all see. New local"
            " disks of guests are there, as qcow2 files: these hosts move servers without copying disks. Not with images_type"
            " rbd. What else a host keeps of guests stays in its state_path.",
        ),
        cfg.StrOpt(
            "nfs_mount_point_base",
            sample_default="$instances_path/mnt",
            help="Where the host mounts volumes that are files on NFS (and the like): an absolute path, to a folder that no other"
            " host of its machine has. A host that takes over the guests of Nova needs Nova's: $state_path/mnt, with Nova's"
            " state_path. It must not change while guests have such volumes.",
        ),
        cfg.StrOpt("images_rbd_pool", default="rbd", help="The pool, if images_type is rbd."),
        cfg.StrOpt(
            "images_rbd_ceph_conf",
            default="",
            help="Ceph's configuration for the pool. It names the monitors and the account's keyring. Empty:"
            " /etc/ceph/ceph.conf.",
        ),
        cfg.IntOpt(
            "rbd_connect_timeout",
            default=5,
            min=1,
            help="Seconds for a monitor of Ceph to answer when the host connects to the pool.",
        ),
        cfg.StrOpt(
            "rbd_user",
            help="Ceph's account of the host, without client.: for its pool (not set: admin), and for volumes where the volume"
            " service names none.",
        ),
        cfg.StrOpt(
            "rbd_secret_uuid",
            help="libvirt's secret with the key of the account. It is made from the host's keyring if libvirt does not have it."
            " For the pool, and for volumes where the volume service names none.",
        ),
        cfg.StrOpt(
            "rescue_image_id",
            help="The image that servers are rescued with if their users name none and the server has none; read by the API.",
        ),
        cfg.IntOpt(
            "live_migration_downtime",
            default=500,
            min=100,
            help="Milliseconds that a guest may stand still at the end of its live migration.",
        ),
    ]
}

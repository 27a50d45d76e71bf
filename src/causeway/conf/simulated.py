"""[simulated]: the hardware of simulated hosts. Ours."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "simulated": [
        cfg.IntOpt("vcpus", default=64, min=1, help="CPUs of a simulated host, in equal parts in its NUMA cells."),
        cfg.IntOpt("memory_mb", default=262144, min=1, help="MiB of memory of a simulated host."),
        cfg.IntOpt("local_gb", default=4096, min=1, help="GiB of local disks of a simulated host."),
        cfg.IntOpt("numa_nodes", default=1, min=1, help="NUMA cells of a simulated host."),
        cfg.IntOpt("threads", default=1, min=1, help="Threads of each core of a simulated host."),
        cfg.ListOpt(
            "huge_pages",
            default=[],
            help="Huge pages in each NUMA cell of a simulated host: sizes in KiB and numbers, as in 2048:512,1048576:4.",
        ),
        cfg.ListOpt(
            "pci_devices",
            default=[],
            help="PCI devices of a simulated host: address=vendor:product, and the NUMA cell if it has one, as in"
            " 0000:81:00.0=8086:154d@0. A physical function of a network card with the name of its interface:"
            " 0000:81:00.0=8086:1572@0/pf:ens1f0; its virtual functions, after it: 0000:81:02.0=8086:154c@0/vf:0000:81:00.0, or"
            " /vdpa:0000:81:00.0. /serial:NUMBER: the serial number of its card.",
        ),
        cfg.DictOpt(
            "live_networks",
            default={},
            help="The networks of simulated hypervisors, as host:network, ... Hypervisors of one network reach one another, so"
            " that guests can go live from one cell to another. A host that is not named is in its cell's network in an embedded"
            " cloud, else in one with all others.",
        ),
        cfg.FloatOpt(
            "link_bandwidth",
            default=0.0,
            min=0.0,
            help="MiB per second at which a simulated host sends disks and memory, for all guests together; 0: no limit.",
        ),
        cfg.FloatOpt(
            "link_latency",
            default=0.0,
            min=0.0,
            help="Seconds before the first byte that a simulated host sends arrives.",
        ),
        cfg.DictOpt(
            "shared_stores",
            default={},
            help="The stores in which simulated hosts keep the local disks of their guests, as host:store, ... Hosts of one store"
            " share the disks, as hosts of one Ceph pool do: servers move between them without a byte of their disks, also to"
            " another cell. A host that is not named keeps the disks itself.",
        ),
        cfg.FloatOpt(
            "guest_data",
            default=0.0,
            min=0.0,
            help="GiB of data that a simulated guest has on its local root disk beyond its image. Sending it takes time as if it"
            " were there. The flavor's extra spec simulated:data overrides it for its servers.",
        ),
        cfg.FloatOpt(
            "guest_disk_rate",
            default=0.0,
            min=0.0,
            help="MiB per second that a simulated guest writes to its local root disk while it runs; extra spec"
            " simulated:disk_rate.",
        ),
        cfg.FloatOpt(
            "guest_memory_rate",
            default=0.0,
            min=0.0,
            help="MiB per second of its memory that a simulated guest changes while it runs; extra spec simulated:memory_rate.",
        ),
        cfg.StrOpt(
            "clock",
            default="",
            help="A file that all processes of a cloud share. With it, time jumps instead of waiting for transfers between"
            " simulated hosts, so that hours are over in seconds, and are shown as hours. Leases, timeouts of calls and"
            " heartbeats still use real time. Empty: everything is in real time.",
        ),
        cfg.FloatOpt(
            "clock_speed",
            default=0.0,
            min=0.0,
            help="Seconds of transfers that pass in one real second if time jumps; so they can be watched. 0: they are over at"
            " once.",
        ),
    ]
}

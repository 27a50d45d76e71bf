"""[simulated]: what simulated hosts are made of; ours."""

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
            help="The networks of simulated hypervisors: host:network, and so on. Those of one network reach one another, so that"
            " guests go live from one cell to another. A host that is not named is in that of its cell in an embedded cloud, else"
            " in one with all others.",
        ),
        cfg.FloatOpt(
            "link_bandwidth",
            default=0.0,
            min=0.0,
            help="MiB per second in which a simulated host sends disks and memory, of all guests together; 0: no limit.",
        ),
        cfg.FloatOpt(
            "link_latency",
            default=0.0,
            min=0.0,
            help="Seconds before anything comes of what a simulated host sends.",
        ),
        cfg.FloatOpt(
            "guest_data",
            default=0.0,
            min=0.0,
            help="GiB of data that a simulated guest has on its local root disk beyond its image. It takes time to send as if it"
            " were there. The flavor's extra spec simulated:data says otherwise for its servers.",
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
            help="A file that all processes of a cloud share: with it, whoever waits for a transfer between simulated hosts does"
            " not wait, but time jumps. So what takes hours is over in seconds and is shown to take hours. Leases, timeouts of"
            " calls and heartbeats go by real time all the same. Empty: all of it is real time.",
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

"""[simulated]: what simulated hosts are made of; ours."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "simulated": [
        cfg.IntOpt("vcpus", default=64, min=1, help="CPUs of a simulated host, in equal parts in its NUMA cells."),
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
            " 0000:81:00.0=8086:154d@0.",
        ),
        cfg.DictOpt(
            "live_networks",
            default={},
            help="The networks of simulated hypervisors: host:network, and so on. Those of one network reach one another, so that"
            " guests go live from one cell to another. A host that is not named is in that of its cell in an embedded cloud, else"
            " in one with all others.",
        ),
    ]
}

"""[embedded]: `causeway up`, every role in one process on embedded parts. Ours; nova.conf has no such group."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "embedded": [
        cfg.HostAddressOpt("listen", default="127.0.0.1", help="The address that all the embedded services listen on."),
        cfg.PortOpt("port", default=8774, help="The port of all the embedded services; 0 picks a free one."),
        cfg.IntOpt("cells", default=2, min=1, max=100, help="Cells that are made."),
        cfg.IntOpt("hosts_per_cell", default=2, min=1, max=1000, help="Compute hosts of each cell."),
        cfg.StrOpt("region", default="RegionOne", help="The region's name in the catalog."),
    ]
}

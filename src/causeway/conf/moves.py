"""[moves]: the engine that moves servers. Ours; nova.conf has no such group."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "moves": [
        cfg.IntOpt("workers", default=32, min=1, help="Moves that one conductor runs at the same time; others wait."),
    ]
}

"""[drains]: many servers moved away together. Ours; nova.conf has no such group."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "drains": [
        cfg.FloatOpt(
            "assumed_rate",
            default=100.0,
            min=0.001,
            help="MiB per second that a host is expected to send, and to receive, of all moves together: what plans of drains are"
            " reckoned with. [moves] bandwidth counts instead if it is less. As much as a link of 1 Gbit/s carries.",
        ),
    ]
}

"""[drains]: how drains are planned and run. Ours; nova.conf has no such group."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

_PLAN: list[Opt] = [
    cfg.FloatOpt(
        "assumed_rate",
        default=100.0,
        min=0.001,
        help="MiB per second that a host is expected to send, and to receive, of all moves together: what plans of drains are"
        " reckoned with. [moves] bandwidth counts instead if it is less. As much as a link of 1 Gbit/s carries.",
    ),
]
_RUN: list[Opt] = [
    cfg.FloatOpt(
        "interval",
        default=3.0,
        min=0.0,
        help="Seconds between two looks of a conductor at drains that run. 0: it leaves them to others.",
    ),
    cfg.FloatOpt(
        "measure_interval",
        default=15.0,
        min=1.0,
        help="Seconds after which what came through is measured, and limits that nobody has set are raised or lowered.",
    ),
    cfg.FloatOpt(
        "warm_ahead",
        default=3600.0,
        min=0.0,
        help="Seconds before a window from which on the disks of servers that go warm are copied, so that in it only their last"
        " changes are left. Until the window their users can do nothing else with them. 0: nothing is copied before.",
    ),
    cfg.FloatOpt(
        "retry_pause",
        default=60.0,
        min=0.0,
        help="Seconds after which the move of a drain's server that failed is tried again, doubled with each failure; and after"
        " which one that can't go is looked at again.",
    ),
]

OPTS: dict[str, list[Opt]] = {"drains": [*_PLAN, *_RUN]}

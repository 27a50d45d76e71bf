"""[drains]: how drains are planned and run. Ours; nova.conf has no such group."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

_PLAN: list[Opt] = [
    cfg.FloatOpt(
        "assumed_rate",
        default=100.0,
        min=0.001,
        help="MiB per second that a host is expected to send, and to receive, for all moves together. Plans of drains use it, or"
        " [moves] bandwidth if that is less. The default is what a link of 1 Gbit/s carries.",
    ),
]
_RUN: list[Opt] = [
    cfg.FloatOpt(
        "interval",
        default=3.0,
        min=0.0,
        help="Seconds between two checks of a conductor at running drains. 0: it leaves them to other conductors.",
    ),
    cfg.FloatOpt(
        "measure_interval",
        default=15.0,
        min=1.0,
        help="Seconds between two measurements of throughput, after which limits that are not set are raised or lowered.",
    ),
    cfg.FloatOpt(
        "warm_ahead",
        default=3600.0,
        min=0.0,
        help="How many seconds before a window the disks of servers that go warm begin to be copied, so that only their last"
        " changes are left for the window. Until then users may rename and delete these servers, and change metadata, tags"
        " and locks; other actions are refused. 0: nothing is copied before.",
    ),
    cfg.FloatOpt(
        "retry_pause",
        default=60.0,
        min=0.0,
        help="Seconds after which a failed move of a drain's server is tried again, doubled with each failure; and after which"
        " a server that can't go is looked at again.",
    ),
]

OPTS: dict[str, list[Opt]] = {"drains": [*_PLAN, *_RUN]}

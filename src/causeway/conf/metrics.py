"""[metrics]: numbers for Prometheus. Ours; nova.conf has no such group."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "metrics": [
        cfg.BoolOpt(
            "enabled",
            default=False,
            help="Serve /metrics for Prometheus: each process at its own `bind`, all workers of an API at one; `causeway up`"
            " on the port of its APIs. It needs no authentication.",
        ),
        cfg.StrOpt("bind", default="127.0.0.1:9180", help="Address and port of /metrics; port 0 picks a free one."),
    ]
}

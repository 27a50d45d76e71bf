"""[fault_injection]: points that can be made to fail, for tests of what survives. Ours; nova.conf has no such group."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "fault_injection": [
        cfg.BoolOpt("enabled", default=False, help="Makes things fail. Never enable it in a cloud that is in use."),
        cfg.StrOpt(
            "file",
            default="$state_path/faults.yaml",
            help="What happens at which point; `causeway faults list` prints the points. Read again when it changed.",
        ),
    ]
}

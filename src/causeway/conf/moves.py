"""[moves]: the engine that moves servers. Ours; nova.conf has no such group."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "moves": [
        cfg.IntOpt("workers", default=32, min=1, help="Moves that one conductor runs at the same time; others wait."),
        cfg.FloatOpt(
            "lease",
            default=30.0,
            min=0.3,
            help="Seconds after which another conductor takes over the moves of one that no longer renews its leases.",
        ),
        cfg.FloatOpt(
            "journal_patience",
            default=300.0,
            min=0.0,
            help="Seconds that a conductor waits in the middle of a move for the API database to come back. After that it lets"
            " go of the move without a word; whoever can read the journal again goes on from there.",
        ),
        cfg.FloatOpt(
            "stuck_retry_interval",
            default=30.0,
            min=0.1,
            help="Seconds between two tries of a move that is stuck because something around it fails.",
        ),
        cfg.IntOpt("attempts", default=4, min=1, help="Tries of a step that must succeed, before its move is stuck."),
        cfg.FloatOpt(
            "first_pause",
            default=0.5,
            min=0.0,
            help="Seconds before a step that must succeed is tried again; doubled with each try.",
        ),
        cfg.IntOpt(
            "explain_checked_hosts",
            default=10,
            min=0,
            help="Fitting hosts, best first, that `causeway explain` asks for a dry run of their checks.",
        ),
        cfg.FloatOpt(
            "explain_timeout",
            default=10.0,
            min=0.1,
            help="Seconds that `causeway explain` waits for the answer of a host.",
        ),
    ]
}

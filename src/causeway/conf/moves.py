"""[moves]: the engine that moves servers. Ours; nova.conf has no such group."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "moves": [
        cfg.IntOpt(
            "workers",
            default=32,
            min=1,
            help="Threads of one conductor for all operations: builds, deletes, moves and others. An operation that waits for"
            " long work of a host, such as a transfer, holds none.",
        ),
        cfg.IntOpt(
            "at_once",
            default=1000,
            min=1,
            help="The most operations that one conductor runs at the same time; others wait for their turn.",
        ),
        cfg.FloatOpt(
            "lease",
            default=30.0,
            min=0.3,
            help="Seconds after which another conductor takes over the operations of one that no longer renews its leases.",
        ),
        cfg.FloatOpt(
            "journal_patience",
            default=300.0,
            min=0.0,
            help="Seconds for which a conductor waits for an unreachable API database in the middle of a move. After that it"
            " abandons the move without undoing anything; any conductor that can read the journal again resumes it.",
        ),
        cfg.FloatOpt(
            "patience",
            default=600.0,
            min=0.0,
            help="Seconds for which a move retries a step that fails for a passing reason (no answer, no connection, a service or"
            " database that fails) while the guest runs, counted from the step's first failure. Then the move is rolled back.",
        ),
        cfg.FloatOpt(
            "patience_while_off",
            default=60.0,
            min=0.0,
            help="The same while the move has the guest powered off, and its owner waits.",
        ),
        cfg.IntOpt(
            "whole_tries",
            default=2,
            min=1,
            help="How often a resize or cold migration is tried in all, if it is rolled back for a passing reason. 1: it is not"
            " tried again.",
        ),
        cfg.FloatOpt(
            "stuck_retry_interval",
            default=30.0,
            min=0.1,
            help="Seconds between two attempts of a stuck move; also the longest pause of a waiting one, and the pause before a"
            " move that was rolled back is tried again as a whole.",
        ),
        cfg.IntOpt(
            "attempts",
            default=4,
            min=1,
            help="Attempts of a step that must succeed before its move is stuck; and of a step that failed in an unforeseen way"
            " before its move is rolled back.",
        ),
        cfg.FloatOpt(
            "first_pause",
            default=0.5,
            min=0.0,
            help="Seconds before a step is tried again; doubled with each attempt.",
        ),
        cfg.StrOpt(
            "warm",
            default="auto",
            choices=[
                ("auto", "before it is powered off, as far as its hosts can"),
                ("never", "when it is powered off"),
            ],
            help="When the local disks of a running server are copied if it is resized, migrated or shelved.",
        ),
        cfg.IntOpt(
            "warm_rounds",
            default=5,
            min=1,
            help="The most rounds that copy changes before a guest is powered off and the rest travels.",
        ),
        cfg.FloatOpt(
            "warm_round_seconds",
            default=2.0,
            min=0.0,
            help="A round that takes no longer than this is the last one before the guest is powered off.",
        ),
        cfg.FloatOpt(
            "throttle",
            default=0.0,
            min=0.0,
            max=0.9,
            help="Limits what a guest writes while its disks are copied, if it writes too fast for the next round to be smaller:"
            " to this share of the speed of copying, until it is off or stays. 0: never.",
        ),
        cfg.FloatOpt(
            "held_round_interval",
            default=300.0,
            min=1.0,
            help="Seconds between two rounds for a server whose disks a drain copies before its window opens.",
        ),
        cfg.StrOpt(
            "direct",
            default="auto",
            choices=[("auto", "if the target reaches the source"), ("never", "through the image service")],
            help="How disks of running guests travel between hosts of different cells, and whether guests that are migrated live"
            " are handed over by their hypervisors (never: near-live, by way of the image service). Inside a cell all goes"
            " directly.",
        ),
        cfg.FloatOpt(
            "bandwidth",
            default=0.0,
            min=0.0,
            help="MiB per second at which a host sends the disks of running guests, for all of them together; 0: no limit.",
        ),
        cfg.StrOpt(
            "compression",
            default="auto",
            choices=[
                ("auto", "where a probe says that the link is slower than compressing"),
                ("never", "as they are"),
            ],
            help="Whether a host compresses the disks of running guests that it sends.",
        ),
        cfg.IntOpt(
            "explain_checked_hosts",
            default=10,
            min=0,
            help="How many fitting hosts, best first, `causeway explain` asks for a dry run of their checks.",
        ),
        cfg.FloatOpt(
            "explain_timeout",
            default=10.0,
            min=0.1,
            help="Seconds that `causeway explain` waits for the answer of a host.",
        ),
    ]
}

"""[conductor], and the reports of services."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

ALL, SUPER, CELL = "all", "super", "cell"

OPTS: dict[str, list[Opt]] = {
    "DEFAULT": [
        cfg.IntOpt("report_interval", default=10, min=1, help="Seconds between two reports of a service."),
        cfg.IntOpt(
            "service_down_time",
            default=60,
            min=1,
            help="Seconds without a report after which a service counts as down.",
        ),
        cfg.IntOpt(
            "sync_power_state_interval",
            default=600,
            help="Seconds between two checks of a cell's conductor for guests of a host that run although their servers are"
            " SHUTOFF: they are stopped, as in Nova. 0: with every report of the host; negative: never. A guest that stopped"
            " by itself makes its server SHUTOFF with the next report, whatever this is.",
        ),
        cfg.IntOpt(
            "reclaim_instance_interval",
            default=0,
            min=0,
            help="Seconds for which a deleted server is kept, powered off, before it is deleted for good. Until then it can be"
            " restored. 0: it is deleted at once. A server that never ran, is in error, was resized or is shelved is always"
            " deleted at once.",
        ),
        cfg.IntOpt(
            "rescue_timeout",
            default=0,
            min=0,
            help="Seconds after which a conductor unrescues a server if its user did not. 0: never.",
        ),
        cfg.BoolOpt(
            "enable_new_services",
            default=True,
            help="New computes take servers at once; if false, an administrator must enable them first.",
        ),
    ],
    "image_cache": [
        cfg.IntOpt(
            "precache_concurrency",
            default=1,
            min=1,
            help="How many hosts of an aggregate fetch images at the same time when images are cached ahead of time.",
        ),
    ],
    "conductor": [
        cfg.StrOpt(
            "role",
            default=ALL,
            choices=[
                (ALL, "drives builds and moves, and takes the reports of computes"),
                (SUPER, "drives builds and moves; every cell has conductors of its own"),
                (
                    CELL,
                    "takes the reports of the computes of one cell: transport_url and [database] connection are the cell's,"
                    " and there is no [api_database]",
                ),
            ],
            help="What this conductor does. Ours.",
        ),
        cfg.IntOpt(
            "recovery_interval",
            default=60,
            min=1,
            help="Seconds between two checks of a super conductor for tasks that a dead one left, and for hosts that must be"
            " cleaned. A task is recovered if it has not changed for this time, and no live conductor works on it. Ours.",
        ),
        cfg.ListOpt(
            "cells",
            default=[],
            help="Names or uuids of the cells whose computes report to this conductor; empty: all cells that there are"
            " when it starts. Only for role = all. This option does not limit moves: a super conductor always drives moves"
            " between all cells. Ours.",
        ),
        cfg.StrOpt(
            "credentials_key",
            default="",
            secret=True,
            help="Any text, the same for all API and super conductor processes. With it the API encrypts the token of the user"
            " who requests an operation, which is stored until the operation has ended. A conductor that takes the operation over"
            " decrypts it, and acts with the user's rights. Empty: the password of [service_user], or of [placement], is used"
            " instead; if there is none either, no token is stored, operations that are taken over act with the service's rights,"
            " and a build fails if it has to make volumes. Ours.",
        ),
    ],
}

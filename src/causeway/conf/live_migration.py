"""Options of live migrations, in Nova's groups: those of [libvirt] hold for every driver that migrates guests live."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

OPTS: dict[str, list[Opt]] = {
    "DEFAULT": [
        cfg.IntOpt(
            "max_concurrent_live_migrations",
            default=1,
            min=0,
            help="Live migrations that leave one host at the same time; others are queued. 0: any number. Read by conductors.",
        ),
    ],
    "conductor": [
        cfg.IntOpt(
            "migrate_max_retries",
            default=-1,
            min=-1,
            help="How many more hosts are tried for a live migration when the first one refuses it; -1: all hosts.",
        ),
    ],
    "libvirt": [
        cfg.IntOpt(
            "live_migration_bandwidth",
            default=0,
            min=0,
            help="MiB/s that a live migration may use at most; 0: no limit.",
        ),
        cfg.IntOpt(
            "live_migration_completion_timeout",
            default=800,
            min=0,
            help="Seconds that a live migration may take for each GiB of memory, and of disks that are copied with it (at least 2"
            " of each). 0: no limit.",
        ),
        cfg.StrOpt(
            "live_migration_timeout_action",
            default="abort",
            choices=["abort", "force_complete"],
            help="What happens to a live migration that takes longer than live_migration_completion_timeout.",
        ),
        cfg.BoolOpt(
            "live_migration_permit_post_copy",
            default=False,
            help="A live migration that is forced to complete may use post-copy: the guest runs at the target before all of its"
            " memory is there, and is lost if either host fails meanwhile. Otherwise the guest stands still until the end.",
        ),
        cfg.BoolOpt(
            "live_migration_permit_auto_converge",
            default=False,
            help="A guest that changes its memory faster than it can be copied may be slowed down.",
        ),
        cfg.BoolOpt(
            "live_migration_with_native_tls",
            default=False,
            help="Hypervisors encrypt what they send to one another.",
        ),
        cfg.FloatOpt(
            "live_migration_monitor_interval",
            default=5.0,
            min=0.0,
            help="Seconds between two reports of a live migration's progress.",
        ),
    ],
}

"""[api_database] and [database]: the databases. Computes have neither."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt

SYNCHRONOUS = cfg.BoolOpt(
    "sqlite_synchronous",
    default=True,
    help="Whether commits to SQLite survive a power cut (PRAGMA synchronous=FULL): each transaction that writes waits until the"
    " disk has it. Without it (NORMAL) a power cut may undo the last commits, such as the end of a move whose disks are deleted"
    " already. Database servers have settings of their own.",
)

OPTS: dict[str, list[Opt]] = {
    "api_database": [
        SYNCHRONOUS,
        cfg.StrOpt(
            "connection",
            secret=True,
            help="URL of the API database, such as postgresql://user:password@host/causeway_api. The cells' databases"
            " are found through it.",
        ),
        cfg.FloatOpt(
            "cell_timeout",
            default=60.0,
            min=0.1,
            help="Seconds after which a cell whose database does not answer counts as down. While it hangs, other calls don't"
            " wait for it again.",
        ),
        cfg.FloatOpt(
            "cells_refresh_interval",
            default=10.0,
            min=0.1,
            help="Seconds after which services look for new and changed cells.",
        ),
        cfg.IntOpt(
            "cell_connections",
            default=128,
            min=2,
            help="The most connections of a process to the databases of all cells together; half of them may be to one. Idle"
            " connections are closed after a minute, or when another database needs one. With more cells than this, each"
            " question to all of them opens connections anew. The API database has its own connections, up to 60.",
        ),
    ],
    "database": [
        cfg.StrOpt("connection", secret=True, help="URL of this cell's database, for the conductors of one cell."),
        SYNCHRONOUS,
    ],
}

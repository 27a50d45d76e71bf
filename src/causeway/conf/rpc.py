"""How services talk. ``transport_url`` and ``rpc_response_timeout`` are oslo.messaging's own."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt
from oslo_messaging import transport
from oslo_messaging.rpc import client

from causeway.model.versions import RELEASES

# The library has them registered only when a transport is made; they are read before.
_LIBRARY = [
    *(option for option in transport._transport_opts if option.dest == "transport_url"),
    *(option for option in client._client_opts if option.dest == "rpc_response_timeout"),
]

OPTS: dict[str, list[Opt]] = {
    "DEFAULT": [
        *_LIBRARY,
        cfg.IntOpt(
            "long_rpc_timeout",
            default=1800,
            min=1,
            help="Seconds for what takes long: the steps of a move, volume attachments. While such a call runs, its server"
            " shows that it is alive; if it does not for rpc_response_timeout, the call has failed.",
        ),
    ],
    "upgrade_levels": [
        cfg.StrOpt(
            "compute",
            regex=rf"^(auto|\d+\.\d+|{'|'.join(RELEASES)})?$",
            help="The RPC version that computes are held to while hosts are upgraded one after the other, such as 1.0; auto:"
            " each host for itself, by the version that it reports. Below 1.1 no server moves between cells. Releases of the"
            " field by name (ussuri, ..., 2026.1) are taken too: before ussuri, which was its first with moves between cells,"
            " they stand for 1.0, since then for no limit.",
        ),
    ],
}

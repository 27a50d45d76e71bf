"""Options of RPC. ``transport_url`` and ``rpc_response_timeout`` are oslo.messaging's own."""

from __future__ import annotations

from oslo_config import cfg
from oslo_config.cfg import Opt
from oslo_messaging import transport
from oslo_messaging.rpc import client

from causeway.model.versions import RELEASES

# Registered here because they are read before a transport is made, when the library would register them.
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
            help="Seconds for long calls: the steps of a move, volume attachments. While such a call runs, its server shows that"
            " it is alive; if it does not for rpc_response_timeout, the call has failed.",
        ),
    ],
    "rpc_signatures": [
        cfg.StrOpt(
            "private_key",
            help="File with the private key (Ed25519, PEM) with which this process signs every message that it sends. Only its"
            " owner and group may be able to read it. `causeway manage queue make-key` makes it. Without it nothing is signed."
            " Ours.",
        ),
        cfg.StrOpt(
            "trusted_keys",
            help="Folder with the public keys of those from whom this process takes messages: control/NAME.pem, services of the"
            " control plane, which may send anything; hosts/HOST.pem, computes, which may report of themselves. Changes in it"
            " need no restart. Without it nothing is checked. Ours.",
        ),
        cfg.BoolOpt(
            "required",
            default=False,
            help="Whether this process refuses messages that are not signed. Messages with a wrong signature are always refused."
            " Set it when all who send to this process have a private key. Ours.",
        ),
        cfg.IntOpt(
            "max_age",
            default=3600,
            min=60,
            help="Seconds for which a signed message counts. It should be longer than long_rpc_timeout. Clocks must not differ by"
            " more. Ours.",
        ),
    ],
    "upgrade_levels": [
        cfg.StrOpt(
            "compute",
            # Nothing is older than the first release.
            regex=rf"^(auto|1\.(1[4-9]|[2-9]\d)|{'|'.join(RELEASES)})?$",
            help="The newest RPC version, such as 1.14, that is sent to computes while hosts are upgraded one after the other;"
            " auto: for each host, the version that it reports. Names of Nova's releases (pike, ..., 2026.1) are accepted"
            " too, and mean no limit.",
        ),
    ],
}

"""Actions that the Compute API has and this service has not yet: they answer 501, so that a caller knows it is not theirs."""

from __future__ import annotations

from causeway import errors
from causeway.api.request import ApiRequest, Handler, Response, handler
from causeway.api.servers import loading

# name, first and last minor version
ACTIONS: list[tuple[str, int, int | None]] = [
    ("rescue", 1, None),
    ("unrescue", 1, None),
    ("resetNetwork", 1, None),
    ("os-getVNCConsole", 1, 5),
    ("os-getSPICEConsole", 1, 5),
    ("os-getSerialConsole", 1, 5),
    ("addFixedIp", 1, 43),
    ("removeFixedIp", 1, 43),
]


def refuse(name: str) -> Handler:
    """The handler of an action that is not there yet."""

    def run(request: ApiRequest, server_id: str) -> Response:
        loading.load(request, server_id, "os_compute_api:servers:show", columns=frozenset(), tags=False)
        raise errors.NotImplementedHere(f"The action {name} is not implemented by this cloud (server {server_id}).")

    run.__name__ = name.replace("-", "_")
    return handler()(run)


@handler(body=[(6, None, {"type": "object"})])
def remote_consoles(request: ApiRequest, server_id: str) -> Response:
    loading.load(request, server_id, "os_compute_api:os-remote-consoles", columns=frozenset(), tags=False)
    raise errors.NotImplementedHere(f"This cloud has no remote consoles (server {server_id}).")

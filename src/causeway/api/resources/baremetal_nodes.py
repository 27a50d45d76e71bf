"""``/os-baremetal-nodes`` (until 2.35): once a proxy of the bare metal service, which this cloud does not use."""

from __future__ import annotations

from causeway import errors
from causeway.api.answers.parts import NEVER
from causeway.api.request import ApiRequest, Handler, Response, handler
from causeway.api.unavailable import Unavailable

LAST = 35
RULE = "os_compute_api:os-baremetal-nodes:"


@handler(statuses=(), answer=NEVER)
def index(request: ApiRequest) -> Response:
    request.authorize(RULE + "list", {})
    raise Unavailable.LIST_NODES.refusal()


@handler(statuses=(), answer=NEVER)
def show(request: ApiRequest, node_id: str) -> Response:
    request.authorize(RULE + "show", {})
    raise Unavailable.SHOW_NODE.refusal(f"node {node_id}")


def changed_elsewhere(command: str) -> Handler:
    """A handler of a change that the Compute API refuses in every cloud: the bare metal service itself makes it."""

    def run(_request: ApiRequest, **_parameters: str) -> Response:
        raise errors.BadRequest(f"Nodes are not changed through this API: use {command} of the bare metal service.")

    run.__doc__ = f"Refused: {command} belongs to the bare metal service."
    return handler(statuses=(), answer=NEVER)(run)

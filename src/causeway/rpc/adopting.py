"""Calls to a host that Nova had, by whoever takes it over: `causeway adopt host`, `causeway adopt hand-back`.

They have a topic of their own, which such a host serves before it takes any other order, and afterwards.
"""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.found_host import FoundHost
from causeway.rpc.declare import Client, call

TOPIC = "adopting"
HISTORY = {"1.0": "look at a host, take it, release it"}


class AdoptingClient(Client):
    """The hosts of one cell, over that cell's message queue."""

    topic, history, to_hosts = TOPIC, HISTORY, True

    @call(since="1.0", monitor=True)
    def look(self, context: RequestContext, host: str) -> FoundHost:
        """Returns what is on the host. Changes nothing."""

    @call(since="1.0", monitor=True)
    def take(self, context: RequestContext, host: str, *, node_uuid: str, guests: list[str]) -> None:
        """Makes the host Causeway's, and starts its compute service; nothing happens if it is already.

        ``guests``: the uuids of those that were compared with the records. Raises Conflict if the host has other ones, if a
        nova-compute runs, or if it is another node.
        """

    @call(since="1.0", monitor=True)
    def release(self, context: RequestContext, host: str) -> None:
        """Ends the compute service and makes the host Nova's again; nothing happens if it is already.

        Raises Conflict while orders are carried out there.
        """

"""Calls of a conductor to the scheduler."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.rpc.declare import Client, call
from causeway.scheduler.explain import Explanation
from causeway.scheduler.many import Packing, PackRequest
from causeway.scheduler.request import MoveClaim, RequestSpec, SchedulingResult

TOPIC = "scheduler"
HISTORY = {"1.0": "hosts for servers, and why not others"}


class SchedulerClient(Client):
    """Calls any scheduler of the cloud."""

    topic, history = TOPIC, HISTORY

    # A request that its queue lost is sent again sooner than others: a user waits for a server, and a late one claims nothing.
    @call(since="1.0", monitor=True, silence=10.0)
    def select_destinations(
        self,
        context: RequestContext,
        *,
        spec: RequestSpec,
        instance_uuids: list[str],
        alternates: bool,
        move: MoveClaim | None = None,
    ) -> list[SchedulingResult]:
        """Chooses a host for each server and claims it.

        ``alternates``: returns other hosts too. ``move``: the migration gets the server's present allocations. Raises NoValidHost
        with one sentence that says why; its details have the hosts and what each of them lacks.
        """

    @call(since="1.0", monitor=True)
    def explain(self, context: RequestContext, *, spec: RequestSpec) -> Explanation:
        """Returns what `select_destinations` would find, for every host of every cell. Changes nothing."""

    @call(since="1.0", monitor=True)
    def pack(self, context: RequestContext, *, request: PackRequest) -> Packing:
        """Finds hosts for many servers together. Changes nothing."""

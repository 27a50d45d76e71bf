"""What a conductor asks of the scheduler."""

from __future__ import annotations

from causeway import errors
from causeway.context import RequestContext
from causeway.rpc.client import RpcClient
from causeway.rpc.transport import Transport
from causeway.scheduler.explain import Explanation
from causeway.scheduler.many import Packing, PackRequest
from causeway.scheduler.request import MoveClaim, RequestSpec, SchedulingResult

TOPIC = "scheduler"
VERSION = "1.0"


class SchedulerClient:
    """Any scheduler of the cloud."""

    def __init__(self, transport: Transport) -> None:
        self._rpc = RpcClient(transport, TOPIC, version=VERSION)

    def select_destinations(
        self,
        context: RequestContext,
        *,
        spec: RequestSpec,
        instance_uuids: list[str],
        alternates: bool,
        move: MoveClaim | None = None,
    ) -> list[SchedulingResult]:
        """A claimed host for each server, with alternates if asked; for a move the claim swaps allocations.

        Raises NoValidHost with one sentence that says why, and the explanation's hosts in its details.
        """
        return self._rpc.call(
            context,
            "select_destinations",
            result=list[SchedulingResult],
            monitor=True,
            spec=spec,
            instance_uuids=instance_uuids,
            alternates=alternates,
            move=move,
        )

    def explain(self, context: RequestContext, *, spec: RequestSpec) -> Explanation:
        """What `select_destinations` would say of every host of every cell; changes nothing."""
        return self._rpc.call(context, "explain", result=Explanation, monitor=True, spec=spec)

    def pack(self, context: RequestContext, *, request: PackRequest) -> Packing:
        """Hosts for many servers together; changes nothing. Raises OperationFailed if the scheduler is too old for that."""
        try:
            return self._rpc.call(context, "pack", result=Packing, monitor=True, request=request)
        except errors.NoSuchMethod as failure:
            raise errors.OperationFailed(
                "The scheduler is too old to plan the moves of many servers: upgrade it first.", details=failure.details
            ) from failure

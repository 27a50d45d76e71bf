"""Lets conductors release and restore claims that no guest ends."""

from __future__ import annotations

from causeway.compute.host import Host
from causeway.compute.host.fence import fenced
from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.model.outcomes import OperationToken


class ClaimsEndpoint:
    """RPC: releases claims, and restores them."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.fence = host.fence

    @fenced
    def drop_move_claim(self, context: RequestContext, *, token: OperationToken, instance_uuid: str) -> None:  # noqa: ARG002
        """Releases what a move claimed here. A later order to claim is refused."""
        with self._host.lock(instance_uuid):
            self._host.claims.release(instance_uuid, token.migration_uuid)

    def remove_leftover_claim(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        instance_uuid: str,
        migration_uuid: str | None,
    ) -> None:
        """Releases a claim. The caller has checked that nothing needs it."""
        with self._host.lock(instance_uuid):
            self._host.claims.release(instance_uuid, migration_uuid)

    def restore_claim(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        instance: Instance,
        migration_uuid: str | None,
    ) -> None:
        """Claims what the server holds here according to its record. Raises ClaimRefused if others hold it."""
        with self._host.lock(instance.uuid):
            self._host.claims.adopt(instance, migration_uuid)

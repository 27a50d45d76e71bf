"""Attaches volumes and ports. The API waits for the result, so the called conductor carries out the operation itself."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from causeway import errors
from causeway.context import RequestContext
from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.network import RequestedNetwork, Vif
from causeway.model.operations import Operation
from causeway.model.sagas import SagaState
from causeway.operations import interfaces, volumes
from causeway.operations.engine import Engine
from causeway.requests import acceptance
from causeway.requests.asking import operation_of
from causeway.requests.requesters import CHECKED
from causeway.running.services import ConductorServices
from causeway.store.cell import instances


class DevicesEndpoint:
    """RPC: add_volume, add_port."""

    def __init__(self, services: ConductorServices, engine: Engine) -> None:
        self._services = services
        self._engine = engine

    def add_volume(
        self,
        context: RequestContext,
        *,
        instance_uuid: str,
        volume_id: str,
        device: str | None,
        tag: str | None,
        delete_on_termination: bool,
    ) -> BlockDevice:
        memory = volumes.AttachMemory(volume_id, device, tag, delete_on_termination)
        done = self._carry_out(context, operations.ATTACH_VOLUME, instance_uuid, memory)
        return msgspec.convert(done.data["mapping"], BlockDevice)

    def add_port(self, context: RequestContext, *, instance_uuid: str, requested: RequestedNetwork) -> Vif:
        memory = interfaces.AttachMemory(requested, requested.port_id)
        done = self._carry_out(context, operations.ATTACH_INTERFACE, instance_uuid, memory)
        return msgspec.convert(done.data["vif"], Vif)

    def _carry_out(self, context: RequestContext, recipe: str, instance_uuid: str, memory: Any) -> Operation:
        """Carries out an attach. If the attach fails, raises the reason; it is undone now, or as soon as possible."""
        operation = operation_of(context, instance_uuid, recipe, memory)
        # Its user waits for the end: their token decides everything, and nothing was accepted before.
        operation.requested_by = {CHECKED: []}
        observer = self._engine.environment.observer
        with observer.working_on(context, operation.id):
            carry_out = partial(
                self._engine.carry_out, context, operation, admit=partial(acceptance.admit_in, operation=operation)
            )
            try:
                saga = acceptance.retry_briefly(carry_out, of_device=True)
            except errors.TakenOver as lost:
                raise errors.TakenOver(
                    "The service was too slow with the attach, which is being undone unless it took effect at the last moment."
                    " Look at the server. Try again if the device is not there.",
                    details=lost.message,
                ) from lost
        if saga.state is SagaState.DONE:
            observer.saga_ended(saga)
            return saga
        if saga.state is SagaState.FAILED:
            observer.saga_ended(saga)
        self._require_server(instance_uuid)
        raise (
            errors.from_wire(saga.error)
            if saga.error
            else errors.Interrupted("The service was stopped during the attach, which is being undone. Try again.")
        )

    def _require_server(self, uuid: str) -> None:
        """Raises ServerNotFound if the server was deleted meanwhile, whatever error that caused (bug 1944787)."""
        _cell, database = self._services.cells.of_server(uuid)
        if instances.find(database, uuid, with_tags=False) is None:
            raise errors.ServerNotFound(uuid)

"""The steps that detach ports with devices of a host from a guest, and attach them where the guest is then.

The memory of a guest can't travel while the guest has such a device (`causeway.hardware.port_devices`). So the source detaches
these ports when everything else is ready, and the guest gets them again wherever it is in the end: at the target, with the
devices that the target has claimed for the move, or at the source, which keeps its claim until the guest has left.

A port that can't be attached must not hold up a guest that runs. After some tries the migration ends without it and says so; the
audit finds the port, and a hard reboot makes the guest with all its ports.
"""

from __future__ import annotations

import logging

from causeway import errors
from causeway.hardware.port_devices import of_devices
from causeway.model.instance import Instance
from causeway.moves import dead_hosts
from causeway.moves.move_run import Run
from causeway.moves.reasons import for_members
from causeway.moves.recipe import Step
from causeway.moves.sides import Side, life_of, source_of, target_of
from causeway.moves.steps.live_prepare import failure_of
from causeway.store.cell import actions

LOG = logging.getLogger(__name__)

# A failure of the host itself. Others (its service stops, the claims are unknown) pass.
_OF_THE_PORT = (errors.GuestFailed, errors.ClaimRefused, errors.UnexpectedFailure, errors.NotImplementedHere)


class DetachPorts(Step):
    """Has the source detach the ports that are devices of it. Undo attaches them, if the guest is there."""

    name = "DetachPorts"
    reads = frozenset({"source_host", "source_cell"})
    reads_if_any = frozenset({"has_port_devices"})

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def do(self, run: Run) -> None:
        instance = run.source_instance()
        if not of_devices(instance.network_info):
            return
        host = run.memory.source_host
        with run.event("compute_detach_port_devices", host), dead_hosts.answering(run, dead_hosts.at_source):
            try:
                run.source_computes.detach_port_devices(
                    run.context, host, token=run.token(self.name), instance=instance
                )
            except errors.GuestFailed as failure:
                # The guest was asked again and again.
                raise failure_of(failure, run.uuid) from failure

    def undo(self, run: Run) -> None:
        attach(run, source_of(run), run.source_instance(), self.name)


class AttachPorts(Step):
    """Has the target attach them to the guest, which runs there."""

    name = "AttachPorts"
    reads = frozenset({"selection", "source_cell"})
    # Their names don't appear in what members read.
    reads_if_any = frozenset({"alternates", "bound_hosts", "requested_host", "source_host", "source_hypervisor"})

    def where(self, run: Run) -> str | None:
        return run.memory.target_host

    def do(self, run: Run) -> None:
        attach(run, target_of(run), run.target_instance(), self.name)


def attach(run: Run, side: Side, instance: Instance, step: str) -> None:
    """Attaches the ports to the guest at that host. The guest of a fenced host is dead, and is made anew with its ports.

    After some tries that fail because of the ports, returns without them.
    """
    if not of_devices(instance.network_info) or life_of(run, side).is_fenced:
        return
    try:
        with (
            run.event("compute_attach_port_devices", side.host),
            dead_hosts.answering(run, lambda run: life_of(run, side)),
        ):
            side.computes.attach_port_devices(run.context, side.host, token=run.token(step), instance=instance)
    except _OF_THE_PORT as failure:
        if not _is_enough(run):
            raise
        LOG.error("Server %s is without a port: %s %s", run.uuid, failure.message, failure.details)
        # A migration that is rolled back says why, instead.
        if not run.is_undoing:
            _say(run, side, failure)


def _is_enough(run: Run) -> bool:
    """Whether the step has failed so often that it is not tried again, at last also because of the ports."""
    step = run.step
    if step is None or step.error is None or step.attempt < run.environment.options.attempts:
        return False
    return isinstance(errors.from_wire(step.error), _OF_THE_PORT)


def _say(run: Run, side: Side, failure: errors.CausewayError) -> None:
    """Records what the server's members can read, not all of whom see events."""
    message = for_members(failure.message, run.memory)
    sentence = f"The server has moved, but a port is not attached: {message} A hard reboot attaches it."
    with side.database.write() as connection:
        actions.set_message_in(connection, run.uuid, run.context.request_id, sentence)

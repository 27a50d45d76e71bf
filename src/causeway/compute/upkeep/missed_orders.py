"""Carries out the orders that this host missed while it was dead, before it takes other orders or starts guests.

Servers that were here may run elsewhere by now. Their guests that still run here are destroyed, and so is what the host kept
for moves that have ended. The conductors know these orders (`causeway.hosts.cleanups`) and have checked where the servers
live.
"""

from __future__ import annotations

import dataclasses
import logging

from causeway import errors
from causeway.compute.guests import build
from causeway.compute.guests.orders import OrdersEndpoint
from causeway.compute.handover.live_endpoint import LiveEndpoint
from causeway.compute.handover.resize import ResizeEndpoint
from causeway.compute.handover.warm import WarmEndpoint
from causeway.compute.host import Host
from causeway.compute.upkeep.claims_endpoint import ClaimsEndpoint
from causeway.context import RequestContext, admin_context
from causeway.hardware.port_devices import without_devices
from causeway.model.missed import Missed, MissedOrder
from causeway.model.states import PowerState

LOG = logging.getLogger(__name__)

# Seconds between two attempts to ask, while no conductor answers.
PAUSE = 5.0


class MissedOrdersEndpoint:
    """RPC: carry_out_missed."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._orders = OrdersEndpoint(host)
        self._resize = ResizeEndpoint(host)
        self._live = LiveEndpoint(host)
        self._claims = ClaimsEndpoint(host)
        self._warm = WarmEndpoint(host)

    def carry_out_missed(self, context: RequestContext, *, orders: list[MissedOrder]) -> list[str]:
        """Returns the ids of the orders that succeeded. An order that fails does not stop the others."""
        done = []
        for order in orders:
            if not order.stop_only:
                uuid = order.instance.uuid
                LOG.warning("Host %s missed %s of server %s: it is done now", self._host.name, order.what, uuid)
            try:
                self._carry_out(context, order)
            except errors.CausewayError as failure:
                LOG.log(
                    failure.log_level,
                    "What is left of server %s stays: %s %s",
                    *(order.instance.uuid, failure.message, failure.details),
                )
                continue
            except Exception:
                # Drivers raise errors of the file system too. Whatever the error is, it concerns only this server.
                LOG.exception("What is left of server %s stays", order.instance.uuid)
                continue
            done.append(order.id)
        return done

    def _carry_out(self, context: RequestContext, order: MissedOrder) -> None:
        what, instance, devices, token = order.what, order.instance, order.block_devices, order.token
        if order.stop_only:
            self._stop(instance.uuid)
            return
        if what is Missed.DESTROY:
            # The ports may be in use elsewhere, with devices of another host. What this host's switch has of them goes.
            gone = dataclasses.replace(instance, network_info=without_devices(instance.network_info))
            connected = [device for device in devices if device.connection_info is not None]
            if token is None:
                build.destroy(self._host, gone, connected)
            else:
                # The order to make the guest may still arrive later.
                self._orders.undo_build(context, token=token, instance=gone, block_devices=connected)
            return
        if what is Missed.RESTORE_DISKS:
            self._restore_disks(instance.uuid)
            return
        if token is None:
            raise errors.OperationFailed(f"The order {what} names no move.")
        if what in (Missed.CONFIRM, Missed.CONFIRM_OF_0_1_0):
            self._resize.confirm_snapshot_based_resize_at_source(context, token=token, instance=instance)
        elif what in (Missed.UNDO, Missed.UNDO_INSIDE_CELL):
            self._resize.drop_move_at_dest(
                context,
                token=token,
                instance=instance,
                block_devices=devices,
                same_host=order.source_host == self._host.name,
            )
        elif what is Missed.DISCARD_COPIES:
            # The order does not say whether this host was the move's source or its target.
            self._warm.end_rounds(context, token=token, instance=instance)
            self._warm.discard_copies(context, token=token, instance=instance)
        elif what is Missed.UNDO_LIVE:
            self._live.rollback_live_migration_at_destination(
                context, token=token, instance=instance, block_devices=devices
            )
        elif what is Missed.DELETE_LIVE_SOURCE:
            self._live.post_live_migration_at_source(context, token=token, instance=instance, block_devices=devices)
        else:
            self._claims.drop_move_claim(context, token=token, instance_uuid=instance.uuid)

    def _stop(self, uuid: str) -> None:
        """Stops a guest at once, since it may run elsewhere too.

        A conductor that knows where the server lives decides about the rest.
        """
        driver = self._host.driver
        with self._host.lock(uuid):
            if driver.inspect(uuid).power_state in (PowerState.RUNNING, PowerState.PAUSED):
                # The order comes with every look, until the rest could be done as well.
                LOG.warning("Host %s stops the guest of server %s, which may run elsewhere", self._host.name, uuid)
                driver.power_off(uuid, 0)

    def _restore_disks(self, uuid: str) -> None:
        driver = self._host.driver
        with self._host.lock(uuid):
            self._host.offers.end_all(uuid)
            facts = driver.inspect(uuid)
            if facts.power_state is None and not facts.has_disks:
                driver.restore_stashed_disks(uuid)


def catch_up(host: Host, endpoint: MissedOrdersEndpoint) -> None:
    """Asks the cell's conductor for the missed orders and carries them out.

    Waits for the answer: the host must not begin without.
    """
    context = admin_context()
    orders = _missed(host, context)
    if not orders:
        return
    done = endpoint.carry_out_missed(context, orders=orders)
    try:
        host.conductor.orders_carried_out(context, host=host.name, ids=done)
    except errors.CausewayError as failure:
        # The orders stay noted. Conductors send them once more, and there is nothing left to do.
        LOG.warning(
            "Host %s could not report that it carried out its missed orders: %s %s",
            host.name,
            failure.message,
            failure.details,
        )


def _missed(host: Host, context: RequestContext) -> list[MissedOrder]:
    while not host.stopping.is_set():
        try:
            return host.conductor.missed_orders(context, host=host.name)
        except errors.CausewayError as failure:
            LOG.warning("Host %s waits for its missed orders: %s %s", host.name, failure.message, failure.details)
            host.stopping.wait(PAUSE)
    return []

"""Notifies of what happened, as the Compute service's versioned notifications.

Methods are named by what happened. With ``[notifications] notification_format`` ``unversioned`` (the default), or without a
driver in ``[oslo_messaging_notifications]``, they do nothing. A broken message bus breaks no operation: see
`causeway.notify.sender`.

Publishers are ``<source>:<host>``. For servers, the source is ``nova-compute`` and the host the one that sends the event in
Nova, whichever process sends it here. For everything else, and for ``instance.update``, it is the notifier's own publisher.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import oslo_messaging
from oslo_config.cfg import ConfigOpts
from oslo_utils import timeutils

from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.drains import Drain, DrainServer
from causeway.model.flavor import Flavor
from causeway.model.host import Aggregate, ServerGroup, Service
from causeway.model.instance import Instance, KeyPair
from causeway.model.states import TaskState, VmState
from causeway.notify import drain_payloads, instance_payloads, payloads
from causeway.notify.instance_payloads import Extra
from causeway.notify.payloads import Payload
from causeway.notify.sender import Outgoing, Sender

if TYPE_CHECKING:
    from causeway.scheduler.request import RequestSpec

LOG = logging.getLogger(__name__)

BlockDeviceLookup = Callable[[Instance], Iterable[BlockDevice]]

COMPUTE = "nova-compute"
# The only fields of a context that are sent: no token, no credentials.
SHOWN_OF_CONTEXT = (
    *("request_id", "global_request_id", "user_id", "project_id", "user_domain", "project_domain", "roles"),
    *("user", "project", "is_admin", "user_name", "project_name", "resource_uuid"),
)


class _ContextSerializer(oslo_messaging.NoOpSerializer):  # type: ignore[misc]
    """Removes secrets from contexts, which older versions of the library don't do."""

    def serialize_context(self, context: Any) -> dict[str, Any]:
        values = context.to_dict()
        return {name: values[name] for name in SHOWN_OF_CONTEXT if name in values}


class Notifier:
    """``transport``: a notification transport of oslo.messaging, or a URL to make one for (None: the configured one).

    ``publisher_id``: "<service binary>:<host>", such as ``nova-api:controller1``. ``block_devices_of`` looks up a server's block
    devices for callers that don't have them; it is only used with ``[notifications] bdms_in_notifications``.
    """

    def __init__(
        self,
        transport: Any,
        publisher_id: str,
        conf: ConfigOpts,
        *,
        block_devices_of: BlockDeviceLookup | None = None,
    ) -> None:
        self.publisher_id = publisher_id
        self._name_template: str = conf.instance_name_template
        self._block_devices_of = block_devices_of
        self._fills_block_devices: bool = conf.notifications.bdms_in_notifications
        self._on_state_change: str | None = conf.notifications.notify_on_state_change
        self._sender: Sender | None = None
        self._own_transport: Any = None
        if conf.notifications.notification_format == "unversioned":
            return
        if transport is None or isinstance(transport, str):
            transport = self._own_transport = oslo_messaging.get_notification_transport(conf, url=transport)
        notifier = oslo_messaging.Notifier(
            transport,
            publisher_id=publisher_id,
            topics=conf.notifications.versioned_notifications_topics,
            serializer=_ContextSerializer(),
        )
        if conf.oslo_messaging_notifications.driver:
            self._sender = Sender(notifier)

    @property
    def is_enabled(self) -> bool:
        return self._sender is not None

    @property
    def counts(self) -> Counter[str]:
        """sent, failed, dropped."""
        return Counter() if self._sender is None else Counter(self._sender.counts)

    def flush(self) -> None:
        """Waits until every notification so far went out or failed."""
        if self._sender is not None:
            self._sender.flush()

    def close(self) -> None:
        if self._sender is not None:
            self._sender.close()
        if self._own_transport is not None:
            self._own_transport.cleanup()

    # Servers

    def instance_action(
        self,
        context: RequestContext,
        instance: Instance,
        action: str,
        phase: str | None,
        *,
        host: str,
        source: str = COMPUTE,
        fault: BaseException | None = None,
        block_devices: Iterable[BlockDevice] | None = None,
        new_flavor: Flavor | None = None,
        volume_id: str | None = None,
        snapshot_image_id: str | None = None,
        rescue_image_ref: str | None = None,
        swapped: tuple[str, str] | None = None,
    ) -> None:
        """``instance.<action>.<phase>``; phase start, end, error, progress, or None where the event has none.

        ``host``: the publisher's host. ``new_flavor`` is for resize_prep, ``volume_id`` for volume_attach and
        volume_detach, ``snapshot_image_id`` for snapshot, ``rescue_image_ref`` for rescue, ``swapped`` (the old and
        the new volume's id) for volume_swap.
        """
        if self._sender is None:
            return
        extra = self._extra(action, instance, new_flavor, volume_id, snapshot_image_id, rescue_image_ref, swapped)
        payload = instance_payloads.action(
            context, instance, fault, self._block_devices(instance, block_devices), extra
        )
        event = f"instance.{action}" if phase is None else f"instance.{action}.{phase}"
        self._emit(context, event, payload, f"{source}:{host}", failed=fault is not None)

    def instance_exists(
        self,
        context: RequestContext,
        instance: Instance,
        *,
        host: str,
        source: str = COMPUTE,
        block_devices: Iterable[BlockDevice] | None = None,
    ) -> None:
        """``instance.exists`` for the current audit period."""
        if self._sender is None:
            return
        devices = self._block_devices(instance, block_devices)
        payload = instance_payloads.exists(context, instance, devices, _current_period())
        self._emit(context, "instance.exists", payload, f"{source}:{host}")

    @property
    def notifies_states(self) -> bool:
        """Whether changes of servers' states are notified."""
        return self._sender is not None and self._on_state_change is not None

    def wants_update(
        self,
        old: tuple[VmState | None, TaskState | None],
        new: tuple[VmState, TaskState | None],
        *,
        renamed: bool = False,
    ) -> bool:
        """Whether ``notify_on_state_change`` wants this change of a server's VM state and task state."""
        if not self.notifies_states:
            return False
        return renamed or old[0] != new[0] or (self._on_state_change == "vm_and_task_state" and old[1] != new[1])

    def instance_update(
        self,
        context: RequestContext,
        instance: Instance,
        *,
        old_vm_state: VmState | None = None,
        old_task_state: TaskState | None = None,
        old_display_name: str | None = None,
        block_devices_of: BlockDeviceLookup | None = None,
    ) -> None:
        """``instance.update`` if ``notify_on_state_change`` wants this change. The publisher is the process that saved it.

        ``old_display_name``: of a server that was renamed. ``block_devices_of``: a lookup in place of the notifier's own.
        """
        renamed = old_display_name is not None and old_display_name != instance.display_name
        old, new = (old_vm_state, old_task_state), (instance.vm_state, instance.task_state)
        if not self.wants_update(old, new, renamed=renamed):
            return
        payload = instance_payloads.update(
            context,
            instance,
            self._block_devices(instance, None, block_devices_of),
            _current_period(),
            old_vm_state,
            old_task_state,
            old_display_name,
        )
        self._emit(context, "instance.update", payload)

    def compute_task_error(
        self,
        context: RequestContext,
        task: str,
        *,
        instance_uuid: str,
        state: VmState | str | None,
        error: BaseException,
        request_spec: RequestSpec | None = None,
    ) -> None:
        """``compute_task.<task>.error``: a conductor could not do what was asked (migrate_server, build_instances, ...)."""
        if self._sender is not None:
            payload = payloads.compute_task(instance_uuid, request_spec, state, error)
            self._emit(context, f"compute_task.{task}.error", payload, failed=True)

    def compute_exception(self, context: RequestContext, error: BaseException, *, host: str) -> None:
        """``compute.exception``: a request to a host failed there."""
        if self._sender is not None:
            self._emit(context, "compute.exception", payloads.exception(error), f"{COMPUTE}:{host}", failed=True)

    def select_destinations(self, context: RequestContext, request_spec: RequestSpec, phase: str) -> None:
        """``scheduler.select_destinations.<phase>``."""
        if self._sender is not None:
            self._emit(context, f"scheduler.select_destinations.{phase}", payloads.request_spec(request_spec))

    # Resources

    def flavor(
        self, context: RequestContext, flavor: Flavor, action: str, *, projects: list[str] | None = None
    ) -> None:
        """``flavor.<action>``: create, update, delete."""
        if self._sender is not None:
            self._emit(context, f"flavor.{action}", payloads.flavor(flavor, projects))

    def keypair(self, context: RequestContext, keypair: KeyPair, action: str, phase: str) -> None:
        """``keypair.<action>.<phase>``: create, import, delete; start, end."""
        if self._sender is not None:
            self._emit(context, f"keypair.{action}.{phase}", payloads.keypair(keypair))

    def aggregate(self, context: RequestContext, aggregate: Aggregate, action: str, phase: str) -> None:
        """``aggregate.<action>.<phase>``: create, delete, add_host, remove_host, update_metadata, update_prop,
        cache_images."""
        if self._sender is not None:
            self._emit(context, f"aggregate.{action}.{phase}", payloads.aggregate(aggregate))

    def aggregate_cache(
        self,
        context: RequestContext,
        aggregate: Aggregate,
        host: str,
        result: dict[str, str],
        *,
        index: int,
        total: int,
    ) -> None:
        """``aggregate.cache_images.progress``: one host is done, the ``index``-th of ``total``. ``result``: image -> its end."""
        if self._sender is not None:
            payload = payloads.aggregate_cache(aggregate, host, result, index, total)
            self._emit(context, "aggregate.cache_images.progress", payload)

    def server_group(
        self, context: RequestContext, group: ServerGroup, action: str, *, hosts: Iterable[str] | None = None
    ) -> None:
        """``server_group.<action>``: create, delete, add_member."""
        if self._sender is not None:
            self._emit(context, f"server_group.{action}", payloads.server_group(group, hosts))

    def service(
        self, context: RequestContext, service: Service, action: str, *, availability_zone: str | None = None
    ) -> None:
        """``service.<action>``: create, update, delete. The publisher is the service itself."""
        if self._sender is not None:
            payload = payloads.service(service, availability_zone)
            self._emit(context, f"service.{action}", payload, f"{service.binary}:{service.host}")

    # Drains: ours, with object names and a namespace of our own.

    def drain(self, context: RequestContext, drain: Drain, action: str) -> None:
        """``causeway.drain.<action>``: create, start, pause, resume, update, cancel, rollback, end, delete."""
        if self._sender is not None:
            self._emit(context, f"causeway.drain.{action}", drain_payloads.drain(drain))

    def drain_server(self, context: RequestContext, drain: Drain, server: DrainServer, phase: str) -> None:
        """``causeway.drain.server.<phase>``: start, moved, end, error, of a server's move in a drain."""
        if self._sender is not None:
            payload = drain_payloads.server(drain, server)
            self._emit(context, f"causeway.drain.server.{phase}", payload, failed=phase == "error")

    def _block_devices(
        self, instance: Instance, given: Iterable[BlockDevice] | None, lookup: BlockDeviceLookup | None = None
    ) -> Iterable[BlockDevice] | None:
        lookup = lookup or self._block_devices_of
        if given is not None or lookup is None or not self._fills_block_devices:
            return given
        try:
            return list(lookup(instance))
        except Exception as failure:  # noqa: BLE001 - no operation may fail because of a notification
            LOG.warning(
                "Server %s is notified without its block devices, which could not be looked up: %s: %s",
                instance.uuid,
                type(failure).__name__,
                failure,
            )
            return None

    def _emit(
        self,
        context: RequestContext,
        event: str,
        payload: Payload,
        publisher: str | None = None,
        *,
        failed: bool = False,
    ) -> None:
        if self._sender is not None:
            priority = "error" if failed else "info"
            self._sender.send(Outgoing(context, publisher or self.publisher_id, event, priority, payload))

    def _extra(
        self,
        action: str,
        instance: Instance,
        new_flavor: Flavor | None,
        volume_id: str | None,
        snapshot_image_id: str | None,
        rescue_image_ref: str | None,
        swapped: tuple[str, str] | None,
    ) -> Extra:
        if action == "create":
            return instance_payloads.create_extra(instance, self._name_template)
        if action == "resize_prep":
            return instance_payloads.resize_prep_extra(new_flavor)
        if action in ("rebuild", "rebuild_scheduled"):
            return instance_payloads.rebuild_extra(instance)
        if action == "rescue":
            return instance_payloads.rescue_extra(rescue_image_ref)
        if swapped is not None:
            return instance_payloads.volume_swap_extra(*swapped)
        if volume_id is not None:
            return instance_payloads.volume_extra(volume_id)
        if snapshot_image_id is not None:
            return instance_payloads.snapshot_extra(snapshot_image_id)
        return Extra()


def _current_period() -> Payload:
    """From the beginning of the month until now."""
    now: datetime = timeutils.utcnow()
    return instance_payloads.audit_period(now.replace(day=1, hour=0, minute=0, second=0, microsecond=0), now)

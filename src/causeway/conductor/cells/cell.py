"""The conductor of a cell: takes the reports of its computes and records them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from oslo_config import cfg

from causeway import errors
from causeway.conductor.cells import reports
from causeway.conductor.cells.cloud_records import MOST_REFUSED, CloudRecords
from causeway.conductor.cells.usage import note_usage
from causeway.context import RequestContext
from causeway.hosts import liveness
from causeway.model.host import ComputeNode
from causeway.model.instance import Instance
from causeway.model.missed import MissedOrder
from causeway.model.outcomes import HostReport, OperationToken, RecordedClaim
from causeway.model.states import PowerState, TaskState, VmState
from causeway.model.volume_keys import VolumeKey
from causeway.moves.hardware import recorded_claims
from causeway.store.cell import hosts, instances, pci_devices
from causeway.store.database import Database, utcnow
from causeway.virt.live_guest import LiveProgress

LOG = logging.getLogger(__name__)


class CellEndpoint:
    """RPC, on the cell's queue: reports of hosts and of transfers.

    ``database``: returns the cell's database. ``cloud``: records what belongs into the API database. ``cell_uuid``: None if
    unknown, because names of hosts are unique. ``remind``: seconds until a host is reported to ``cloud`` again; None if such
    reports can't get lost.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        database: Callable[[], Database],
        cloud: CloudRecords,
        *,
        cell_uuid: str | None = None,
        remind: float | None = None,
    ) -> None:
        self._conf = conf
        self._database = database
        self._cloud = cloud
        self._cell_uuid = cell_uuid
        self._remind = remind
        # host -> its node, and when both were reported to the cloud
        self._known: dict[str, tuple[str, float]] = {}
        # host -> when its guests were last compared with servers that are stopped
        self._looked: dict[str, float] = {}
        # host -> when it reported last
        self._heard: dict[str, float] = {}
        self._forced_down: set[str] = set()
        # Hosts of which a report was refused. It is logged once, because such a host reports again and again.
        self._refused: set[str] = set()

    def report_host(self, context: RequestContext, *, report: HostReport) -> bool:
        self._check(report)
        database = self._database()
        is_first = report.host not in self._known
        was_mapped = self._map(context, database, report.node)
        service = hosts.report_service(
            database,
            report.host,
            "nova-compute",
            "compute",
            report.service_version,
            disabled_if_new=not self._conf.enable_new_services,
        )
        records = instances.of_host_or_moving(database, report.host)
        there = [instance for instance in records if instance.host == report.host]
        note_usage(report.node, records, self._cell_uuid)
        if hosts.save_node(database, report.node) and not was_mapped:
            # The host's compute service was deleted meanwhile, and with it what the cloud knew of the host.
            self._known.pop(report.host, None)
            self._map(context, database, report.node)
        if report.pci_devices or is_first:
            pci_devices.save(database, report.node.uuid, report.pci_devices)
        looks = self._looks_for_running(report.host)
        for instance in there:
            self._sync_power(context, database, instance, report, looks=looks)
        self._report_returned_host(context, report, {instance.uuid for instance in there}, service.forced_down)
        return not service.disabled

    def _check(self, report: HostReport) -> None:
        try:
            reports.check(report)
        except errors.ReportRefused as refusal:
            if report.host not in self._refused and len(self._refused) < MOST_REFUSED:
                self._refused.add(report.host)
                LOG.error("%s %s", refusal.message, refusal.details)
            raise

    def _map(self, context: RequestContext, database: Database, node: ComputeNode) -> bool:
        """Reports a host and its node to the cloud, before anything of them is recorded. Returns False if it was not time yet.

        Raises Conflict if the name or the node is known to be another host's.
        """
        (known, mapped_at), now = self._known.get(node.host, ("", 0.0)), time.monotonic()
        if known == node.uuid and (self._remind is None or now - mapped_at <= self._remind):
            return False
        hosts.check_node(database, node)
        self._cloud.map_host(context, host=node.host, node_uuid=node.uuid)
        self._known[node.host] = (node.uuid, now)
        return True

    def _report_returned_host(
        self, context: RequestContext, report: HostReport, there: set[str], forced_down: bool
    ) -> None:
        """Reports a host that may need a cleanup to the cloud; with each report of the host, until one has arrived.

        Such a host was unreachable or forced down, or has guests of servers that are on other hosts. It may still have guests
        that were evacuated from it, or parts of moves that continued without it.
        """
        last, now = self._heard.get(report.host), time.monotonic()
        was_unreachable = last is None or now - last > self._conf.service_down_time
        was_forced_down = report.host in self._forced_down and not forced_down
        if forced_down:
            self._forced_down.add(report.host)
        if was_unreachable or was_forced_down or report.guests.keys() - there:
            try:
                self._cloud.host_is_back(context, host=report.host)
            except errors.CausewayError as failure:
                LOG.warning("Host %s is not cleaned yet: %s %s", report.host, failure.message, failure.details)
                return
        self._heard[report.host] = now
        if not forced_down:
            self._forced_down.discard(report.host)

    def missed_orders(self, context: RequestContext, *, host: str) -> list[MissedOrder]:
        """Returns the orders that a starting host must carry out first.

        Raises RpcTimeout or DatabaseFailed if they can't be read, unless the host can't have missed any.
        """
        service = next(iter(hosts.list_services(self._database(), host=host, binary="nova-compute")), None)
        if service is None:
            return []
        try:
            return self._cloud.missed_orders(context, host=host)
        except (errors.RpcTimeout, errors.DatabaseFailed):
            # The host was unreachable for only a moment, and was not fenced, so no operation continued without it.
            if hosts.is_up(service, utcnow(), self._conf.service_down_time):
                return []
            raise

    def orders_carried_out(self, context: RequestContext, *, host: str, ids: list[str]) -> None:
        self._cloud.orders_carried_out(context, host=host, ids=ids)

    def _looks_for_running(self, host: str) -> bool:
        """Whether it is time to look for guests on this host that run although their servers are stopped."""
        interval, last, now = self._conf.sync_power_state_interval, self._looked.get(host), time.monotonic()
        if interval < 0 or (last is not None and now - last < interval):
            return False
        self._looked[host] = now
        return True

    def _sync_power(
        self, context: RequestContext, database: Database, instance: Instance, report: HostReport, *, looks: bool
    ) -> None:
        """Sets a server to SHUTOFF if its guest has stopped, and stops a guest that runs although its server is SHUTOFF.

        Does not change servers that have a task (such as a move), or hidden copies. ``looks``: whether to look for such guests.
        """
        settled = timedelta(seconds=self._conf.report_interval)
        if instance.task_state is not None or instance.hidden:
            return
        if instance.updated_at is not None and utcnow() - instance.updated_at < settled:
            return
        power_state = report.guests.get(instance.uuid, PowerState.NOSTATE)
        if looks and instance.vm_state is VmState.STOPPED and power_state in (PowerState.RUNNING, PowerState.PAUSED):
            LOG.warning("Guest of server %s on %s runs, though the server is stopped", instance.uuid, report.host)
            self._have_stopped(context, instance, report.host)
            return
        if power_state == instance.power_state or power_state is PowerState.NOSTATE:
            return
        ran = instance.vm_state in (VmState.ACTIVE, VmState.PAUSED)
        stopped = ran and power_state in (PowerState.SHUTDOWN, PowerState.CRASHED)
        LOG.info("Guest of server %s on %s is %s now", instance.uuid, report.host, power_state.name)
        # An operation that began since the server was read has priority.
        with suppress(errors.StateChanged, errors.ServerNotFound):
            instances.update(
                database,
                instance.uuid,
                expected_task={None},
                expected_vm={instance.vm_state},
                power_state=power_state,
                **({"vm_state": VmState.STOPPED} if stopped else {}),
            )

    def _have_stopped(self, context: RequestContext, instance: Instance, host: str) -> None:
        try:
            self._cloud.guest_runs(context, instance_uuid=instance.uuid)
        except errors.CausewayError as failure:
            # The reports of other servers must not fail because of this one. The next look finds the guest again.
            LOG.warning(
                "Guest of server %s on %s was not stopped: %s %s", instance.uuid, host, failure.message, failure.details
            )

    def report_progress(
        self, context: RequestContext, *, token: OperationToken, bytes_done: int, bytes_total: int
    ) -> float | None:
        reports.check_bytes(f"move {token.operation_id}", bytes_done, bytes_total)
        self._cloud.report_progress(context, token=token, bytes_done=bytes_done, bytes_total=bytes_total)
        return self._cloud.rate_of(context, token=token) if token.heeds_rate else None

    def report_live_progress(
        self, context: RequestContext, *, token: OperationToken, progress: LiveProgress
    ) -> float | None:
        reports.check_live_progress(f"move {token.operation_id}", progress)
        uuid = self._cloud.report_live_progress(context, token=token, progress=progress)
        # As in Nova, only the progress of the memory is shown.
        percent = 100 - 100 * progress.memory_remaining // progress.memory_total if progress.memory_total else 0
        with suppress(errors.StateChanged, errors.ServerNotFound):
            instances.update(
                self._database(), uuid, expected_task={TaskState.MIGRATING}, progress=min(max(percent, 0), 100)
            )
        return self._cloud.rate_of(context, token=token) if token.heeds_rate else None

    def check_order(self, context: RequestContext, *, token: OperationToken, forward: bool) -> None:
        self._cloud.check_order(context, token=token, forward=forward)

    def check_start(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        host: str,
        instance_uuid: str,
        task_state: TaskState | None,
    ) -> None:
        database = self._database()
        liveness.in_cell(database, host, self._conf.service_down_time).refuse_fenced()
        instance = instances.get(database, instance_uuid, with_tags=False)
        if (instance.host, instance.task_state) != (host, task_state):
            raise errors.StateChanged(
                f"Server {instance_uuid} is not started: it is on another host, or its start was abandoned.",
                details=f"on {instance.host} with the task {instance.task_state}; {host} has the order of {task_state}",
            )

    def recorded_claims(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        host: str,
        instance_uuids: list[str] | None,
    ) -> list[RecordedClaim]:
        servers = instances.of_host_or_moving(self._database(), host)
        if instance_uuids is not None:
            wanted = set(instance_uuids)
            servers = [each for each in servers if each.uuid in wanted]
        return [claim for server in servers for claim in recorded_claims(server, host)]

    def volume_key(self, context: RequestContext, *, host: str, volume_id: str, public_key: str) -> VolumeKey:
        return self._cloud.volume_key(context, host=host, volume_id=volume_id, public_key=public_key)

    def tpm_key(self, context: RequestContext, *, host: str, key_id: str, public_key: str) -> VolumeKey:
        return self._cloud.tpm_key(context, host=host, key_id=key_id, public_key=public_key)

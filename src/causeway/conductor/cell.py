"""The conductor of a cell: takes the reports of its computes and writes them down."""

from __future__ import annotations

import logging
import time
from datetime import timedelta

from causeway.conductor.evacuate import EVACUATION
from causeway.conductor.services import ConductorServices
from causeway.conductor.usage import note_usage
from causeway.context import RequestContext
from causeway.model.instance import Instance
from causeway.model.outcomes import HostReport, MoveToken
from causeway.model.states import MigrationStatus, PowerState, VmState
from causeway.rpc.conductor import ConductorClient
from causeway.store.api import cells as cell_records
from causeway.store.api import journal, migrations
from causeway.store.cell import hosts, instances, pci_devices
from causeway.store.database import Database, utcnow

LOG = logging.getLogger(__name__)


class CellEndpoint:
    """RPC, on the cell's queue: reports of hosts and of transfers."""

    def __init__(self, services: ConductorServices, cell_uuid: str, conductor: ConductorClient) -> None:
        self._services = services
        self._conductor = conductor
        self._cell_uuid = cell_uuid
        self._known: set[str] = set()
        # host -> when it reported last
        self._heard: dict[str, float] = {}

    def report_host(self, context: RequestContext, *, report: HostReport) -> bool:
        database = self._services.cells.database(self._cell_uuid)
        service = hosts.report_service(
            database,
            report.host,
            "nova-compute",
            "compute",
            report.service_version,
            disabled_if_new=not self._services.conf.enable_new_services,
        )
        records = instances.of_host_or_moving(database, report.host)
        there = [instance for instance in records if instance.host == report.host]
        note_usage(report.node, records, self._cell_uuid)
        hosts.save_node(database, report.node)
        if report.pci_devices or report.host not in self._known:
            pci_devices.save(database, report.node.uuid, report.pci_devices)
        if report.host not in self._known:
            cell_records.map_host(self._services.api, report.host, self._cell_uuid)
            self._known.add(report.host)
        for instance in there:
            self._sync_power(database, instance, report)
        self._look_for_evacuated(context, report, {instance.uuid for instance in there})
        return not service.disabled

    def _look_for_evacuated(self, context: RequestContext, report: HostReport, there: set[str]) -> None:
        """A host that was away, or that has guests of servers that are not there, may hold what was evacuated from it."""
        last, now = self._heard.get(report.host), time.monotonic()
        self._heard[report.host] = now
        was_away = last is None or now - last > self._services.conf.service_down_time
        if (was_away or report.guests.keys() - there) and migrations.search(
            self._services.api,
            source_compute=report.host,
            migration_type=EVACUATION,
            statuses=[MigrationStatus.DONE],
            limit=1,
        ):
            self._conductor.clean_evacuated(context, host=report.host)

    def _sync_power(self, database: Database, instance: Instance, report: HostReport) -> None:
        """A guest that stopped by itself makes its server SHUTOFF. Work in progress, and hidden copies, are left alone."""
        settled = timedelta(seconds=self._services.conf.report_interval)
        if instance.task_state is not None or instance.hidden:
            return
        if instance.updated_at is not None and utcnow() - instance.updated_at < settled:
            return
        power_state = report.guests.get(instance.uuid, PowerState.NOSTATE)
        if power_state == instance.power_state or power_state is PowerState.NOSTATE:
            return
        stopped = power_state in (PowerState.SHUTDOWN, PowerState.CRASHED) and instance.vm_state is VmState.ACTIVE
        LOG.info("Guest of server %s on %s is %s now", instance.uuid, report.host, power_state.name)
        instances.update(
            database,
            instance.uuid,
            expected_task={None},
            expected_vm={instance.vm_state},
            power_state=power_state,
            **({"vm_state": VmState.STOPPED} if stopped else {}),
        )

    def report_progress(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        token: MoveToken,
        bytes_done: int,
        bytes_total: int,
    ) -> None:
        journal.record_progress(self._services.api, token, bytes_done, bytes_total)

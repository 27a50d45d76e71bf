"""The hosts to which a server could be moved, and why not to others: a dry run of the scheduler and of the hosts' checks.

A dry run writes, claims, binds and connects nothing. It asks only hosts that pass the scheduler, the best ones first; only some
of them at the same time, and each for a limited time.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

from oslo_config import cfg

from causeway import errors
from causeway.clients.port_owners import PortOwner
from causeway.context import RequestContext
from causeway.hardware.port_devices import requests_of
from causeway.model.block_device import BlockDevice, is_volume_backed
from causeway.model.candidates import MoveCandidate, MoveCandidates, MoveContents, MovedVolume, PreCheck
from causeway.model.flavor import Flavor
from causeway.model.host import STORAGE
from causeway.model.instance import Instance
from causeway.model.operations import RESIZE
from causeway.model.states import VmState
from causeway.model.warm import WarmCopy
from causeway.moves import reach
from causeway.moves.destination import request_spec
from causeway.moves.hardware import asking
from causeway.moves.measured_rates import described, last_measured
from causeway.moves.memory import MoveMemory
from causeway.moves.port_resources import ask_for_ports
from causeway.moves.steps.warm import why_while_off
from causeway.running.services import ConductorServices
from causeway.scheduler.explain import Explanation, HostVerdict, Refusal
from causeway.store.api import journal
from causeway.store.cell import block_devices, hosts, instances

# The name of the filter that is shown for hosts that pass the scheduler, but refuse the server in their own checks.
HOST_CHECK = "HostCheck"
# The name of the check that says how the guest's memory would come to a host of another cell.
MEMORY = "memory"
# The name of the check that says whether the disks are in storage that both hosts share.
DISKS = "disks"
_WITH_MEMORY = (VmState.ACTIVE, VmState.PAUSED)
# Hosts that are asked at the same time.
THREADS = 5


MemoryCheck: TypeAlias = Callable[[MoveCandidate], list[PreCheck]]


class CandidatesEndpoint:
    """RPC: move_candidates."""

    def __init__(self, services: ConductorServices) -> None:
        self._services = services

    def move_candidates(
        self, context: RequestContext, *, instance_uuid: str, flavor: Flavor | None, cross_cell_allowed: bool
    ) -> MoveCandidates:
        services = self._services
        cell, database = services.cells.of_server(instance_uuid)
        instance = instances.get(database, instance_uuid, with_tags=False)
        if not instance.host:
            raise errors.Conflict(f"Instance {instance_uuid} is not ready: it has no host.")
        devices = block_devices.of_instance(database, instance_uuid)
        nodes = hosts.list_nodes(database, host=instance.host)
        memory = MoveMemory(
            migration_type="resize" if flavor is not None else "migration",
            source_cell=cell.uuid,
            source_host=instance.host,
            source_node=nodes[0].uuid if nodes else "",
            source_hypervisor=instance.node,
            source_zone=instance.availability_zone,
            old_flavor=instance.flavor,
            new_flavor=flavor or instance.flavor,
            old_vm_state=instance.vm_state,
            cross_cell_allowed=cross_cell_allowed,
            migrates_to_same_host=bool(nodes and nodes[0].capabilities.get("supports_migrate_to_same_host")),
            source_storage=nodes[0].capabilities.get(STORAGE) if nodes else None,
        )
        spec = request_spec(
            services.api,
            services.conf,
            instance_uuid,
            memory,
            lambda: any(device.is_volume for device in devices),
            requests_of(instance),
        )
        if instance.network_info:
            ask_for_ports(spec, memory, services.network.ports_of_server(context, PortOwner.of(instance)))
        explanation = services.scheduler.explain(context, spec=spec)
        found = [candidate_of(verdict) for verdict in explanation.hosts]
        with_new_flavor = dataclasses.replace(
            asking(services.conf, instance, memory.new_flavor),
            flavor=memory.new_flavor,
            new_flavor=memory.new_flavor,
            old_flavor=memory.old_flavor,
        )
        contents = self._contents(context, instance, devices, cell.uuid)
        source_can = nodes[0].capabilities if nodes else {}
        if contents.disk_gb:
            measured = last_measured(journal.of_server(services.api, instance_uuid))
            contents.travel = _travel(services.conf, instance, bool(source_can.get("supports_warm_copy")), measured)
        can_be_saved = bool(source_can.get("supports_saved_memory"))
        contents.memory = _memory(self._services.conf, instance, can_be_saved)
        check_memory = (
            self._memory_checks(context, instance, devices, cell.uuid, source_can) if flavor is None else None
        )
        self._check(context, with_new_flavor, devices, found, check_memory)
        if contents.disk_gb and memory.source_storage is not None:
            self._check_storage(found, memory.source_storage)
        follow_checks(explanation, found)
        return MoveCandidates(
            server=instance_uuid,
            source_host=instance.host,
            source_cell=cell.name,
            flavor=memory.new_flavor.name,
            summary=_summary(explanation),
            moves=contents,
            candidates=sorted(found, key=lambda candidate: not candidate.fits),
            silent_cells=explanation.silent_cells,
        )

    def _contents(
        self, context: RequestContext, instance: Instance, devices: list[BlockDevice], cell_uuid: str
    ) -> MoveContents:
        """Returns what a move would transfer. Asks the server's host for the size of the disks."""
        contents = MoveContents(
            disk_bytes=None,
            disk_gb=instance.flavor.ephemeral_gb + (0 if is_volume_backed(devices) else instance.flavor.root_gb),
            volumes=[
                MovedVolume(device.volume_id or "", device.volume_size, device.device_name, device.is_root)
                for device in devices
                if device.is_volume
            ],
            ports=[vif.id for vif in instance.network_info],
        )
        try:
            contents.disk_bytes = (
                self._services.computes(cell_uuid)
                .measure_disks(context, instance.host or "", instance_uuid=instance.uuid, timeout=self._timeout)
                .allocated_bytes
            )
        except errors.CausewayError as failure:
            contents.note = f"The server's host did not say how large its disks are: {failure.message}"
        return contents

    def _check(
        self,
        context: RequestContext,
        instance: Instance,
        devices: list[BlockDevice],
        found: list[MoveCandidate],
        check_memory: MemoryCheck | None,
    ) -> None:
        """Asks the best of the fitting hosts to check the server, and notes their answers in ``found``."""
        fitting = [candidate for candidate in found if candidate.fits]
        limit: int = self._services.conf.moves.explain_checked_hosts
        for candidate in fitting[limit:]:
            candidate.note = f"not asked: only the best {limit} hosts are"
        asked = fitting[:limit]
        if not asked:
            return
        ports = self._port_checks(context, instance)

        def ask(candidate: MoveCandidate) -> None:
            try:
                checks = self._services.computes(candidate.cell_uuid).check_move_to_host(
                    context, candidate.host, instance=instance, block_devices=devices, timeout=self._timeout
                )
            except errors.RpcTimeout:
                candidate.note = f"did not answer within {self._timeout:g} seconds"
            except errors.CausewayError as failure:
                candidate.note = f"could not be asked: {failure.message} {failure.details}".strip()
            else:
                candidate.checked = True
                candidate.checks = [*checks, ports(candidate.host)]
                if check_memory is not None:
                    candidate.checks += check_memory(candidate)

        with ThreadPoolExecutor(THREADS, thread_name_prefix="explain") as pool:
            list(pool.map(ask, asked))

    def _check_storage(self, found: list[MoveCandidate], storage: str) -> None:
        """Notes which of the hosts that were asked keep disks where the server's host does."""
        for candidate in found:
            if not candidate.checked:
                continue
            database = self._services.cells.database(candidate.cell_uuid)
            node = next(iter(hosts.list_nodes(database, host=candidate.host)), None)
            there = node.capabilities.get(STORAGE) if node is not None else None
            if there == storage:
                message = f"none of their bytes would move: both hosts keep them in {storage}"
            else:
                message = f"all of their bytes would move: out of {storage}" + (f" into {there}" if there else "")
            candidate.checks.append(PreCheck(DISKS, True, message))

    def _memory_checks(
        self,
        context: RequestContext,
        instance: Instance,
        devices: list[BlockDevice],
        cell_uuid: str,
        can: dict[str, Any],
    ) -> MemoryCheck | None:
        """Returns a check that says how a live migration would take the guest to a candidate; None for a guest without memory.

        ``can``: the capabilities of the hypervisor of its host.
        """
        if instance.vm_state not in _WITH_MEMORY:
            return None
        services, here = self._services, instance.host or ""
        source = services.computes(cell_uuid)
        guest = reach.describe(services.conf, context, instance, devices, source)

        def check(candidate: MoveCandidate) -> list[PreCheck]:
            if candidate.cell_uuid == cell_uuid:
                return []
            why: errors.CausewayError | None
            if isinstance(guest, errors.CausewayError):
                why = guest
            else:
                target = services.computes(candidate.cell_uuid)
                why = reach.why_not_reached(context, guest, here, source, target, candidate.host)
            if why is None:
                pause = reach.live_pause(instance.flavor.memory_mb, can)
                return [PreCheck(MEMORY, True, f"would come live, standing still for {pause:.0f} s at most")]
            pause = reach.longest_pause(instance.flavor.memory_mb)
            return [
                PreCheck(MEMORY, True, f"would come near-live, standing still for {pause:.0f} s at most: {why.message}")
            ]

        return check

    @property
    def _timeout(self) -> float:
        seconds: float = self._services.conf.moves.explain_timeout
        return seconds

    def _port_checks(self, context: RequestContext, instance: Instance) -> Callable[[str], PreCheck]:
        """Returns host -> whether the server's ports could be bound there, which is certain only after they are bound."""
        if not instance.network_info:
            return lambda _host: PreCheck("ports", True, "no ports")
        network = self._services.network
        try:
            there = {port["id"] for port in network.ports_of_server(context, PortOwner.of(instance))}
            agents = network.wiring_agents(context)
        except errors.CausewayError as failure:
            unknown = PreCheck("ports", None, f"the network service could not be asked: {failure.message}")
            return lambda _host: unknown
        gone = [vif.id for vif in instance.network_info if vif.id not in there]
        missing = f"; ports that are gone stay behind: {', '.join(gone)}" if gone else ""

        def check(host: str) -> PreCheck:
            if host not in agents:
                return PreCheck("ports", None, f"the network service knows no agent on this host{missing}")
            dead = sorted(kind for kind, is_alive in agents[host].items() if not is_alive)
            if dead:
                return PreCheck("ports", False, f"dead on this host: {', '.join(dead)}{missing}")
            return PreCheck("ports", True, f"{len(there)} bindable{missing}")

        return check


def candidate_of(verdict: HostVerdict) -> MoveCandidate:
    """Returns a verdict of the scheduler in the form in which it is shown."""
    candidate = MoveCandidate(
        host=verdict.host,
        hypervisor_hostname=verdict.hypervisor_hostname,
        cell=verdict.cell_name,
        cell_uuid=verdict.cell_uuid,
        fits=verdict.refusal is None,
        chosen=verdict.selected,
    )
    if verdict.refusal is None:
        candidate.recipe = RESIZE
        candidate.weights, candidate.weight = verdict.weights, verdict.total
    else:
        _refuse(candidate, verdict.refusal)
    return candidate


def follow_checks(explanation: Explanation, found: list[MoveCandidate]) -> None:
    """Marks hosts that refuse the server in their own checks as not fitting, because a move would try the next host.

    ``found``: the candidates for the hosts of ``explanation``, in the same order.
    """
    for verdict, candidate in zip(explanation.hosts, found, strict=True):
        failed = [check for check in candidate.checks if check.passed is False]
        if not candidate.fits or not failed:
            continue
        names = ", ".join(check.name for check in failed)
        verdict.refusal = Refusal(
            f"says that it could not take the server (its check of {names})",
            f"say that they could not take the server (their check of {names})",
            {check.name: check.message for check in failed},
            filter=HOST_CHECK,
        )
        candidate.fits = candidate.chosen = verdict.selected = False
        candidate.recipe = None
        _refuse(candidate, verdict.refusal)
    fitting = [candidate for candidate in found if candidate.fits]
    if fitting and not any(candidate.chosen for candidate in fitting):
        fitting[0].chosen = True


def _refuse(candidate: MoveCandidate, refusal: Refusal) -> None:
    candidate.refused_by, candidate.reason, candidate.values = refusal.filter, refusal.one, refusal.values
    candidate.needs, candidate.free = refusal.needs, refusal.free


def _travel(conf: cfg.ConfigOpts, instance: Instance, host_can: bool, measured: WarmCopy | None) -> str:
    why = why_while_off(conf, runs=instance.vm_state is VmState.ACTIVE, host_can=host_can)
    if why is not None:
        return f"its disks travel while it is off: {why}"
    way = "directly to hosts that reach its own, else through the image service"
    if conf.moves.direct == "never":
        way = "directly inside its cell, through the image service to others"
    rates = described(measured, conf.moves.throttle)
    return "; ".join(filter(None, (f"its disks are copied while it runs: {way}", rates)))


def _memory(conf: cfg.ConfigOpts, instance: Instance, host_can: bool) -> str:
    """Says what happens to the guest's memory in a resize or cold migration, and which moves would keep it."""
    if instance.vm_state not in _WITH_MEMORY:
        return ""
    kept = "a live migration keeps it inside the cell, while the server runs"
    if host_can:
        seconds = reach.longest_pause(instance.flavor.memory_mb)
        live = "," if conf.moves.direct == "never" else ": so, too, where hypervisors reach one another, else"
        kept += f", and to another cell, if policy allows that{live} with the server standing still for {seconds:.0f} s at most"
    return f"its memory ({instance.flavor.memory_mb} MiB) is lost, for it boots; {kept}"


def _summary(explanation: Explanation) -> str:
    said = explanation.summary(with_hosts=True)
    return f"{said[0].upper()}{said[1:]}."

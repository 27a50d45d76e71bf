"""What a conductor believes of a host's answer: only what the host itself can know, of the server that it was asked about.

A host may be compromised. Its answer becomes a record, and records decide later which ports are deleted, which attachments are
ended and which images other hosts download. So every answer is compared with the order that it answers before anybody sees it
(`check`). Each type of answer has a row: in `CHECKS`, or in `HARMLESS` with the reason.

- Ids (volumes, attachments, ports, images, servers) must be those of the order. Others are refused, except for ports: the network
  service may show the host a port that was attached meanwhile, which is left out.
- What a volume is connected to is remembered with the host that said it (`CONNECTED_HOST`), and never sent to another host
  (`for_host`), which would connect to whatever it names.
- Numbers are counts that fit into a database.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from types import NoneType
from typing import Any

from oslo_utils import netutils, uuidutils

from causeway import errors
from causeway.model import guest_names
from causeway.model.audit import HostContents
from causeway.model.block_device import BlockDevice
from causeway.model.candidates import DiskMeasure, PreCheck
from causeway.model.console import ConsoleAddress
from causeway.model.diagnostics import Diagnostics
from causeway.model.instance import Instance, MigrationContext
from causeway.model.network import Vif
from causeway.model.outcomes import CopiedVolume, DiskOffer, GuestOutcome, Snapshot, SourceOutcome, UploadedDisk
from causeway.model.pci import InstancePCIRequest, PciDevice
from causeway.model.shared_disk import Owner, SharedDisk, StoredDisk
from causeway.model.states import PowerState
from causeway.model.warm import CopyRound, RoundReceived
from causeway.rpc.compute.live_calls import GuestPresence, LiveCheck, LiveOutcome
from causeway.virt.driver import KEPT_STATE, MEMORY, ROOT_DISK, GuestFacts
from causeway.virt.live_guest import LiveSource, LiveTarget

LOG = logging.getLogger(__name__)

#: the key of a volume's connection info for the host that connected it
CONNECTED_HOST = "causeway_host"
#: calls in which a host connects nothing, but says whether it could connect volumes of such a kind
ONLY_CHECKS = frozenset({"check_move_to_host", "prep_snapshot_based_resize_at_dest"})
_MACHINE_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_DISK_NAME = re.compile(rf"{ROOT_DISK}|{KEPT_STATE}|{MEMORY}|disk\.(swap|eph\d{{1,3}})")
_PCI_ADDRESS = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]")
_PORTS = range(1, 2**16)
_LONGEST_NAME = 255


@dataclasses.dataclass(frozen=True)
class Order:
    """An order and who answered it. ``given``: its arguments by name."""

    host: str
    method: str
    given: Mapping[str, Any]

    @property
    def instance(self) -> Instance | None:
        found: Instance | None = self.given.get("instance")
        return found

    @property
    def devices(self) -> list[BlockDevice]:
        """The devices that the order is about."""
        several: list[BlockDevice] = self.given.get("block_devices") or []
        return [*several, *(self.given[name] for name in ("block_device", "new") if name in self.given)]

    def refuse(self, what: str) -> errors.AnswerRefused:
        return errors.AnswerRefused(self.host, self.method, what)


Check = Callable[[Order, Any], Any]


def check(host: str, method: str, given: Mapping[str, Any], result: Any, answer: Any) -> Any:
    """Returns what is believed of an answer of type ``result``. Raises AnswerRefused."""
    checked = CHECKS.get(result)
    return answer if checked is None else checked(Order(host, method, given), answer)


def for_host(host: str, method: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments of an order without connection info that another host has said."""
    if method in ONLY_CHECKS:
        return dict(given)
    return {
        name: [_without_foreign(host, each) for each in value]
        if name == "block_devices"
        else _without_foreign(host, value)
        if isinstance(value, BlockDevice)
        else value
        for name, value in given.items()
    }


def _without_foreign(host: str, device: BlockDevice) -> BlockDevice:
    said_by = (device.connection_info or {}).get(CONNECTED_HOST, host)
    return device if said_by == host else dataclasses.replace(device, connection_info=None)


# volumes and ports


def _device(order: Order, answered: BlockDevice) -> BlockDevice:
    asked = next((each for each in order.devices if each.uuid == answered.uuid), None)
    if asked is None or (asked.volume_id, asked.attachment_id) != (answered.volume_id, answered.attachment_id):
        raise order.refuse(f"device {answered.uuid}, volume {answered.volume_id}, attachment {answered.attachment_id}")
    info = answered.connection_info
    if info is not None:
        info = {**info, CONNECTED_HOST: order.host}
    return dataclasses.replace(asked, connection_info=info)


def _copied_volume(order: Order, answered: CopiedVolume) -> CopiedVolume:
    return CopiedVolume(_device(order, answered.volume), _count(order, answered.bytes_done))


def _ports(order: Order, answered: list[Vif]) -> list[Vif]:
    known = {vif.id: vif for vif in order.instance.network_info} if order.instance is not None else {}
    added = order.given.get("port_id")
    believed = []
    for vif in answered:
        _port(order, vif)
        if vif.id in known:
            # Whether a port outlives its server is decided when it is attached, not by a host.
            before = known[vif.id]
            believed.append(dataclasses.replace(vif, preserve_on_delete=before.preserve_on_delete, tag=before.tag))
        elif vif.id == added:
            believed.append(vif)
        else:
            LOG.warning("Host %s named port %s, which its order %s is not about", order.host, vif.id, order.method)
    return believed


def _port(order: Order, answered: Vif) -> None:
    """What users are shown of a port. A wrong address harms its own server only, but it must be an address."""
    addresses = [address for ip in answered.fixed_ips for address in (ip.address, *ip.floating_ips)]
    texts = (answered.id, answered.network_id, answered.network_label, *(ip.subnet_id for ip in answered.fixed_ips))
    if not (
        netutils.is_valid_mac(answered.address)
        and all(netutils.is_valid_ip(address) for address in addresses)
        and all(ip.version in (4, 6) for ip in answered.fixed_ips)
        and all(len(text) <= _LONGEST_NAME for text in texts)
    ):
        raise order.refuse(f"port {answered.id[:80]!r} with values that no port has")


# guests and claims


def _guest(order: Order, answered: GuestOutcome) -> GuestOutcome:
    machine_type = answered.machine_type
    if machine_type is not None and not _MACHINE_TYPE.fullmatch(machine_type):
        raise order.refuse(f"machine type {machine_type[:80]!r}")
    requests = order.instance.pci_requests if order.instance is not None else []
    return dataclasses.replace(
        answered,
        network_info=_ports(order, answered.network_info),
        block_devices=[_device(order, each) for each in answered.block_devices],
        bytes_done=_count(order, answered.bytes_done),
        pci_devices=_pci_devices(order, answered.pci_devices, requests),
        guest_name=_guest_name(order, answered.guest_name),
    )


def _guest_name(order: Order, answered: str | None) -> str | None:
    """Only a name that is recorded can have been taken by another guest: all others are computed."""
    if answered is None or order.instance is None or order.instance.guest_name is None:
        return None
    if answered != order.instance.guest_name and not guest_names.is_accepted(answered, order.instance.uuid):
        raise order.refuse(f"a guest of name {answered[:80]!r}")
    return answered


def _claim(order: Order, answered: MigrationContext) -> MigrationContext:
    token = order.given.get("token")
    if token is not None and answered.migration_uuid != token.migration_uuid:
        raise order.refuse(f"migration {answered.migration_uuid}")
    if answered.dest_host not in (None, order.host):
        raise order.refuse(f"host {answered.dest_host}")
    # A host says what it has claimed. Everything else is known better here, and added by whoever asked.
    asked = order.instance.pci_requests if order.instance is not None else []
    if {request.request_id for request in answered.new_pci_requests} - {request.request_id for request in asked}:
        raise order.refuse("a claim of PCI devices that nobody asked for")
    return MigrationContext(
        answered.migration_uuid,
        dest_host=answered.dest_host,
        new_numa_topology=answered.new_numa_topology,
        new_pci_requests=asked if answered.new_pci_requests else [],
        new_pci_devices=_claimed_devices(order, answered.new_pci_devices, asked),
    )


def _claimed_devices(order: Order, answered: list[PciDevice], asked: list[InstancePCIRequest]) -> list[PciDevice]:
    """As many devices for each request as it asks for, each another one."""
    wanted = Counter({request.request_id: request.count for request in asked})
    if answered and Counter(device.request_id for device in answered) != wanted:
        raise order.refuse("other devices than those that were asked for")
    if len({device.address for device in answered}) != len(answered):
        raise order.refuse("a device twice")
    return _pci_devices(order, answered, asked)


def _pci_devices(order: Order, answered: list[PciDevice], requests: Collection[InstancePCIRequest]) -> list[PciDevice]:
    wanted = {request.request_id for request in requests}
    for device in answered:
        _pci_device(order, device)
        if requests and device.request_id not in wanted:
            raise order.refuse(f"device {device.address} for request {device.request_id}")
    return answered


def _pci_device(order: Order, answered: PciDevice) -> PciDevice:
    uuid = order.instance.uuid if order.instance is not None else None
    if not _PCI_ADDRESS.fullmatch(answered.address) or answered.instance_uuid not in (None, uuid):
        raise order.refuse(f"device {answered.address[:80]!r} of server {answered.instance_uuid}")
    return answered


def _live_check(order: Order, answered: LiveCheck) -> LiveCheck:
    return dataclasses.replace(answered, context=_claim(order, answered.context))


# disks that travel


def _disk_name(order: Order, name: str) -> str:
    if not _DISK_NAME.fullmatch(name):
        raise order.refuse(f"disk {name[:80]!r}")
    return name


def _base(order: Order, base_image_id: str | None) -> None:
    """A host that gets the disk downloads its base image: it must be the server's, which its user may read."""
    if base_image_id is not None and (order.instance is None or base_image_id != order.instance.image_ref):
        raise order.refuse(f"base image {base_image_id[:80]!r}")


def _snapshot(order: Order, answered: Snapshot, image_id: str | None) -> None:
    if answered.image_id != image_id:
        raise order.refuse(f"image {answered.image_id[:80]!r}")
    _count(order, answered.size)
    _base(order, answered.base_image_id)


def _part(order: Order, answered: Snapshot) -> Snapshot:
    _snapshot(order, answered, order.given.get("image_id"))
    return answered


def _snapshots(order: Order, answered: dict[str, Snapshot]) -> dict[str, Snapshot]:
    images = dict(order.given.get("image_ids") or order.given.get("disk_image_ids") or {})
    if order.given.get("memory_image_id") is not None:
        images[MEMORY] = order.given["memory_image_id"]
    for name, snapshot in answered.items():
        _snapshot(order, snapshot, images.get(_disk_name(order, name)))
    return answered


def _source(order: Order, answered: SourceOutcome) -> SourceOutcome:
    if answered.snapshot is not None:
        _snapshot(order, answered.snapshot, order.given.get("image_id"))
    _snapshots(order, answered.disks)
    _shared(order, answered.shared)
    if answered.offer is not None:
        _offer(order, answered.offer)
    return answered


def _shared(order: Order, answered: dict[str, SharedDisk]) -> dict[str, SharedDisk]:
    """Another server's disk, or another host's, would be taken over by the target."""
    uuid = order.instance.uuid if order.instance is not None else ""
    for name, disk in answered.items():
        _disk_name(order, name)
        owner = Owner.parse(disk.owner)
        is_its_own = owner is not None and owner.host == order.host and owner.former is None
        if disk.name != f"{uuid}_{name}" or not is_its_own:
            raise order.refuse(f"shared disk {disk.name} of {disk.owner}")
    return answered


def _offer(order: Order, answered: DiskOffer) -> None:
    names = [_disk_name(order, disk.name) for disk in answered.disks]
    if len(set(names)) != len(names):
        raise order.refuse("a disk twice")
    for disk in answered.disks:
        _count(order, disk.size)
        _base(order, disk.base_image_id)


def _round(order: Order, answered: CopyRound) -> CopyRound:
    if answered.since not in (None, order.given.get("since")):
        raise order.refuse(f"changes since round {answered.since}")
    for disk in answered.disks:
        _disk_name(order, disk.name)
        _base(order, disk.base_image_id)
        for number in (disk.size, disk.block, disk.to_send, disk.parts):
            _count(order, number)
    return answered


def _received(order: Order, answered: RoundReceived) -> RoundReceived:
    _count(order, answered.sent)
    return answered


def _live_source(order: Order, answered: LiveSource) -> LiveSource:
    _shared(order, answered.shared)
    for disk in answered.disks:
        _disk_name(order, disk.name)
        _base(order, disk.base_image_id)
        _count(order, disk.size)
    _count(order, answered.disk_bytes)
    return answered


# what is on a host


def _facts(order: Order, answered: GuestFacts) -> GuestFacts:
    asked = order.given.get("instance_uuid") or (order.instance.uuid if order.instance is not None else answered.uuid)
    if answered.uuid != asked:
        raise order.refuse(f"server {answered.uuid[:80]!r}")
    return answered


def _contents(order: Order, answered: HostContents) -> HostContents:
    named = [*answered.guests, *answered.disks, *answered.stashed, *answered.rescue_disks]
    for uuid in [*named, *(claim.instance_uuid for claim in answered.claims)]:
        if not uuidutils.is_uuid_like(uuid):
            raise order.refuse(f"server {uuid[:80]!r}")
    for address in itertools.chain.from_iterable((answered.port_devices or {}).values()):
        if not netutils.is_valid_mac(address):
            raise order.refuse(f"address {address[:80]!r}")
    return answered


# numbers


def _count(order: Order, number: int | None) -> int | None:
    if number is not None and not 0 <= number < 2**63:
        raise order.refuse(f"the number {number}")
    return number


def _uploaded(order: Order, answered: UploadedDisk) -> UploadedDisk:
    _count(order, answered.bytes_done)
    return answered


def _live_outcome(order: Order, answered: LiveOutcome) -> LiveOutcome:
    _count(order, answered.bytes_done)
    return answered


def _console(order: Order, answered: ConsoleAddress) -> ConsoleAddress:
    if answered.port not in _PORTS:
        raise order.refuse(f"port {answered.port}")
    return answered


CHECKS: dict[Any, Check] = {
    BlockDevice: _device,
    ConsoleAddress: _console,
    CopiedVolume: _copied_volume,
    CopyRound: _round,
    GuestOutcome: _guest,
    LiveCheck: _live_check,
    LiveOutcome: _live_outcome,
    LiveSource: _live_source,
    MigrationContext: _claim,
    PciDevice: _pci_device,
    RoundReceived: _received,
    Snapshot: _part,
    SourceOutcome: _source,
    UploadedDisk: _uploaded,
    dict[str, Snapshot]: _snapshots,
    dict[str, SharedDisk]: _shared,
    GuestFacts: _facts,
    HostContents: _contents,
    int | None: _count,
    list[Vif]: _ports,
}

#: types of answers of which any value may be used, and why
HARMLESS: dict[Any, str] = {
    bool: "whether the host did it: a lie concerns the server's own guest",
    DiskMeasure: "numbers for a plan of this server",
    Diagnostics: "shown to whoever asks for them",
    GuestPresence: "which host owns a guest is decided by the presences of both hosts, and never by an epoch that is over",
    LiveTarget: "the source's driver reads it, and checks it (`causeway.virt.libvirt.live`)",
    NoneType: "nothing",
    PowerState: "the state of the server's own guest",
    dict[str, str]: "images that the host has cached, shown to administrators",
    list[PreCheck]: "sentences for whoever asks where a server can go",
    list[StoredDisk]: "shown to administrators; what a fix deletes is a disk of a server that was deleted",
    list[str]: "orders that the host has carried out; ids of other hosts' orders change nothing",
    str: "the text on the guest's console",
}

"""What a conductor believes of a host's answers (`causeway.rpc.compute.answers`)."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from causeway import errors
from causeway.model.audit import HostClaim, HostContents
from causeway.model.block_device import BlockDevice
from causeway.model.console import ConsoleAddress
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance, MigrationContext
from causeway.model.network import Vif
from causeway.model.outcomes import (
    CopiedVolume,
    DiskOffer,
    GuestOutcome,
    OfferedDisk,
    OperationToken,
    Snapshot,
    SourceOutcome,
    UploadedDisk,
)
from causeway.model.pci import InstancePCIRequest, PciDevice
from causeway.model.shared_disk import SharedDisk
from causeway.model.states import PowerState
from causeway.model.warm import CopiedDisk, CopyRound, RoundReceived
from causeway.rpc.compute import ComputeClient, answers
from causeway.rpc.compute.live_calls import LiveCheck, LiveOutcome
from causeway.rpc.declare import calls_of
from causeway.virt.driver import MEMORY, GuestFacts
from causeway.virt.live_guest import LiveDisk, LiveSource

HOST, SERVER, MIGRATION, PORT, IMAGE = "host1", "11111111-aaaa-4aaa-8aaa-000000000000", "migration", "port", "image"
OTHER = "99999999-aaaa-4aaa-8aaa-000000000000"
FLAVOR = Flavor(flavorid="f", name="f", memory_mb=128, vcpus=1, root_gb=1)
TOKEN = OperationToken("move", MIGRATION, 1, "step")
CALLS = calls_of(ComputeClient)


def vif(port: str, **fields: Any) -> Vif:
    return Vif(port, "fa:16:3e:00:00:01", "network", **fields)


def volume(uuid: str = "bdm", **fields: Any) -> BlockDevice:
    given = {"volume_id": "volume", "attachment_id": "attachment", **fields}
    return BlockDevice(uuid, SERVER, "volume", "volume", **given)


def instance(**fields: Any) -> Instance:
    given = {"network_info": [vif(PORT, preserve_on_delete=True, tag="nic")], "image_ref": IMAGE, **fields}
    return Instance(SERVER, "project", "user", "name", flavor=FLAVOR, **given)


def order(**fields: Any) -> dict[str, Any]:
    return {"token": TOKEN, "instance": instance(), "block_devices": [volume()], **fields}


def guest(**fields: Any) -> GuestOutcome:
    return GuestOutcome(PowerState.RUNNING, **fields)


def believed(method: str, given: dict[str, Any], answer: Any) -> Any:
    return answers.check(HOST, method, given, CALLS[method].result, answer)


def test_each_type_of_answer_is_checked_or_said_to_be_harmless() -> None:
    types = {str(call.result) for call in CALLS.values()}
    checked, harmless = ({str(each) for each in rows} for rows in (answers.CHECKS, answers.HARMLESS))
    assert types == checked | harmless
    assert not checked & harmless


def test_what_is_recorded_of_a_volume_is_how_it_is_connected() -> None:
    said = volume(connection_info={"data": 1}, delete_on_termination=True, boot_index=0, volume_size=9)
    outcome = believed("start_guest", order(), guest(block_devices=[said]))
    assert outcome.block_devices == [volume(connection_info={"data": 1, answers.CONNECTED_HOST: HOST})]


def test_a_host_names_only_a_guest_whose_recorded_name_another_one_may_have() -> None:
    recorded, computed = instance(guest_name="instance-0000002a"), f"instance-{SERVER}"
    said = guest(guest_name=computed)
    assert believed("start_guest", order(instance=recorded), said).guest_name == computed
    assert believed("start_guest", order(), said).guest_name is None


REQUEST = InstancePCIRequest("one", 1, [])


def claimed(*request_ids: str) -> MigrationContext:
    """A target's claim of one device, for each of these requests."""
    device = PciDevice("0000:81:00.0", "8086", "1", instance_uuid=SERVER)
    return MigrationContext(
        MIGRATION,
        new_pci_requests=[InstancePCIRequest(each, 1, []) for each in request_ids],
        new_pci_devices=[dataclasses.replace(device, request_id=each) for each in request_ids],
    )


REFUSED: list[tuple[str, dict[str, Any], Any]] = [
    ("start_guest", order(), guest(block_devices=[volume("another")])),
    ("start_guest", order(), guest(block_devices=[volume(volume_id=OTHER)])),
    ("start_guest", order(), guest(block_devices=[volume(attachment_id=OTHER)])),
    ("build_guest", order(block_devices=[]), guest(block_devices=[volume()])),
    ("start_guest", order(), guest(bytes_done=2**63)),
    ("start_guest", order(), guest(bytes_done=-1)),
    ("start_guest", order(), guest(machine_type="pc' emulator='/bin/sh")),
    ("start_guest", order(instance=instance(guest_name="instance-0000002a")), guest(guest_name=f"instance-{OTHER}")),
    ("start_guest", order(instance=instance(guest_name="instance-0000002a")), guest(guest_name="../x' file='/y")),
    ("start_guest", order(), guest(pci_devices=[PciDevice("0000:81:00.0", "8086", "1", instance_uuid=OTHER)])),
    ("start_guest", order(), guest(pci_devices=[PciDevice("../../x", "8086", "1")])),
    (
        "start_guest",
        order(instance=instance(pci_requests=[InstancePCIRequest("wanted", 1, [])])),
        guest(pci_devices=[PciDevice("0000:81:00.0", "8086", "1", request_id="another")]),
    ),
    ("connect_volume", {"instance": instance(), "block_device": volume()}, volume(attachment_id=OTHER)),
    ("copy_volume", {"instance": instance(), "old": volume("old"), "new": volume()}, CopiedVolume(volume("old"))),
    ("copy_volume", {"instance": instance(), "old": volume("old"), "new": volume()}, CopiedVolume(volume(), -1)),
    ("prep_snapshot_based_resize_at_dest", order(), MigrationContext(OTHER)),
    ("prep_snapshot_based_resize_at_dest", order(), MigrationContext(MIGRATION, dest_host="host2")),
    ("check_can_live_migrate_destination", order(), LiveCheck(MigrationContext(OTHER))),
    *(
        ("check_can_live_migrate_destination", order(instance=instance(pci_requests=asked)), LiveCheck(claimed(*named)))
        for asked, named in (
            ([], ["one"]),
            ([REQUEST], ["one", "another"]),
            ([REQUEST], ["another"]),
            ([REQUEST], ["one", "one"]),
            ([dataclasses.replace(REQUEST, count=2)], ["one", "one"]),
        )
    ),
    ("prep_snapshot_based_resize_at_source", order(), SourceOutcome(PowerState.SHUTDOWN, Snapshot(OTHER, "qcow2", 1))),
    (
        "prep_snapshot_based_resize_at_source",
        order(image_id="ours", disk_image_ids={}),
        SourceOutcome(PowerState.SHUTDOWN, Snapshot(OTHER, "qcow2", 1)),
    ),
    (
        "prep_snapshot_based_resize_at_source",
        order(image_id="ours", disk_image_ids={}),
        SourceOutcome(PowerState.SHUTDOWN, Snapshot("ours", "qcow2", 1, base_image_id=OTHER)),
    ),
    (
        "prep_snapshot_based_resize_at_source",
        order(image_id="ours", disk_image_ids={"disk.eph0": "ours0"}),
        SourceOutcome(PowerState.SHUTDOWN, None, {"disk.eph0": Snapshot(OTHER, "qcow2", 1)}),
    ),
    (
        "save_guest_at_source",
        order(memory_image_id="ours", image_id=None, disk_image_ids={}),
        SourceOutcome(PowerState.SHUTDOWN, None, {MEMORY: Snapshot(OTHER, "raw", 1)}),
    ),
    ("send_offered", order(image_ids={"disk": "ours"}), {"disk": Snapshot(OTHER, "qcow2", 1)}),
    ("send_offered", order(image_ids={"disk": "ours"}), {"../disk": Snapshot("ours", "qcow2", 1)}),
    ("send_part", order(image_id="ours"), Snapshot(OTHER, "raw", 1)),
    ("send_part", order(image_id="ours"), Snapshot("ours", "raw", -1)),
    *(
        (
            "prep_snapshot_based_resize_at_source",
            order(),
            SourceOutcome(PowerState.SHUTDOWN, offer=DiskOffer("http://host1/move", "secret", disks)),
        )
        for disks in (
            [OfferedDisk("../../etc/passwd", "qcow2", 1, "")],
            [OfferedDisk("disk", "qcow2", 1, ""), OfferedDisk("disk", "qcow2", 1, "")],
            [OfferedDisk("disk", "qcow2", 2**63, "")],
            [OfferedDisk("disk", "qcow2", 1, "", base_image_id=OTHER)],
        )
    ),
    ("begin_round", order(since=None), CopyRound(1, 3, "http://host1/x", "secret")),
    *(
        ("begin_round", order(since=None), CopyRound(1, None, "http://host1/x", "secret", [disk]))
        for disk in (
            CopiedDisk("/etc/passwd", 1, 1, 1, 1),
            CopiedDisk("disk", 1, 1, 1, 1, base_image_id=OTHER),
            CopiedDisk("disk", 2**63, 1, 1, 1),
        )
    ),
    ("receive_round", order(), RoundReceived(-1)),
    ("check_can_live_migrate_source", order(), LiveSource("QEMU", 1, [LiveDisk("../x", 1)])),
    ("check_can_live_migrate_source", order(), LiveSource("QEMU", 1, [LiveDisk("disk", 1, OTHER)])),
    ("check_can_live_migrate_source", order(), LiveSource("QEMU", 1, [LiveDisk("disk", -1)])),
    ("live_migration", order(), LiveOutcome(None, 2**63)),
    ("upload_disk", order(), UploadedDisk(-1)),
    ("merge_volume_files", order(), 2**63),
    ("inspect_instance", {"instance_uuid": SERVER}, GuestFacts(OTHER, PowerState.RUNNING)),
    ("claim_port_device", {"instance": instance()}, PciDevice("0000:81:00.0", "8086", "1", instance_uuid=OTHER)),
    ("get_console", {"instance": instance()}, ConsoleAddress("host1", 70000, "http://x")),
    ("list_host", {}, HostContents(guests={"../x": PowerState.RUNNING})),
    ("list_host", {}, HostContents(claims=[HostClaim("x", None)])),
]


@pytest.mark.parametrize(
    ("method", "given", "answer"), REFUSED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_what_the_order_is_not_about_is_refused(method: str, given: dict[str, Any], answer: Any) -> None:
    with pytest.raises(errors.AnswerRefused) as refusal:
        believed(method, given, answer)
    assert HOST in refusal.value.details
    assert method in refusal.value.details
    assert HOST not in refusal.value.message


def test_a_claim_is_all_that_a_target_says_of_a_move() -> None:
    said = MigrationContext(
        MIGRATION,
        dest_host=HOST,
        source_host="host9",
        source_cell="cell9",
        dest_cell="cell9",
        old_pci_devices=[PciDevice("0000:81:00.0", "8086", "1")],
    )
    assert believed("prep_snapshot_based_resize_at_dest", order(), said) == MigrationContext(MIGRATION, dest_host=HOST)


def test_a_target_claims_what_it_was_asked_for() -> None:
    asked = dataclasses.replace(REQUEST, spec=[{"physical_network": "physnet1"}])
    given = order(instance=instance(pci_requests=[asked]))
    said = believed("check_can_live_migrate_destination", given, LiveCheck(claimed("one"))).context
    assert said.new_pci_requests == [asked]
    assert [device.address for device in said.new_pci_devices] == ["0000:81:00.0"]


def test_ports_of_others_are_left_out() -> None:
    seen = vif(PORT, vif_type="ovs", preserve_on_delete=False, tag="another")
    outcome = believed("start_guest", order(), guest(network_info=[seen, vif(OTHER)]))
    assert outcome.network_info == [vif(PORT, vif_type="ovs", preserve_on_delete=True, tag="nic")]
    plugged = believed("plug_port", order(port_id="new"), [seen, vif("new"), vif(OTHER)])
    assert [each.id for each in plugged] == [PORT, "new"]


def test_the_connection_that_a_host_named_is_sent_to_that_host_only() -> None:
    connected = volume(connection_info={"data": 1, answers.CONNECTED_HOST: HOST})
    plain = volume("plain", connection_info={"data": 2})
    given = {"block_devices": [connected, plain], "block_device": connected, "new": connected, "instance": instance()}
    assert answers.for_host(HOST, "start_guest", given) == given
    elsewhere = dataclasses.replace(connected, connection_info=None)
    assert answers.for_host("host2", "start_guest", given) == {
        "block_devices": [elsewhere, plain],
        "block_device": elsewhere,
        "new": elsewhere,
        "instance": instance(),
    }


@pytest.mark.parametrize("method", sorted(answers.ONLY_CHECKS))
def test_a_host_that_connects_nothing_may_look_at_it(method: str) -> None:
    given = {"block_devices": [volume(connection_info={"data": 1, answers.CONNECTED_HOST: HOST})]}
    assert answers.for_host("host2", method, given) == given


def test_a_host_can_not_say_that_another_one_connected_a_volume() -> None:
    said = volume(connection_info={"data": 1, answers.CONNECTED_HOST: "host2"})
    outcome = believed("connect_volume", {"instance": instance(), "block_device": volume()}, said)
    assert outcome.connection_info == {"data": 1, answers.CONNECTED_HOST: HOST}


SHARED = SharedDisk("rbd:fsid/pool", f"{SERVER}_disk", f"{HOST} 3")


@pytest.mark.parametrize(
    "said",
    [
        {"disk": dataclasses.replace(SHARED, name=f"{OTHER}_disk")},
        {"disk": dataclasses.replace(SHARED, name=f"{SERVER}_disk.eph0")},
        {"disk": dataclasses.replace(SHARED, owner="host2 3")},
        {"../disk": SHARED},
    ],
    ids=["another server's", "another disk", "another host's", "no disk"],
)
def test_a_host_hands_over_only_its_own_disks_in_shared_storage(said: dict[str, SharedDisk]) -> None:
    """The target would take them over."""
    assert answers.check(HOST, "shared_disks", order(), dict[str, SharedDisk], {"disk": SHARED}) == {"disk": SHARED}
    with pytest.raises(errors.AnswerRefused):
        answers.check(HOST, "shared_disks", order(), dict[str, SharedDisk], said)
    with pytest.raises(errors.AnswerRefused):
        answers.check(
            HOST, "save_guest_at_source", order(), SourceOutcome, SourceOutcome(PowerState.PAUSED, shared=said)
        )
    live = LiveSource("QEMU", 1, [LiveDisk(name, 1, shared=disk) for name, disk in said.items()])
    with pytest.raises(errors.AnswerRefused):
        answers.check(HOST, "check_can_live_migrate_source", order(), LiveSource, live)

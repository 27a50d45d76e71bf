"""Rescue and unrescue over the API: states, answers, disks, records, events."""

from __future__ import annotations

from typing import Any

import os_traits
import pytest

from causeway.conductor.upkeep import overdue_rescues
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model import rescue
from causeway.model.states import PowerState, TaskState, VmState
from causeway.store.cell import hosts, instances
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.rescued import (
    MARK,
    ask,
    disks_of,
    driver_of,
    guest_of,
    has_its_own,
    is_rescued,
    make_image,
    message,
    rescued,
    unrescued,
    with_mark,
)

CLOUD: dict[str, Any] = {"overrides": {"DEFAULT": {"rescue_timeout": 3600}}}

STABLE = {"hw_rescue_device": "disk", "hw_rescue_bus": "virtio"}
UNKNOWN = "99999999-2222-3333-4444-555555555555"


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> AuditedCloud:
    return AuditedCloud(embedded)


@pytest.fixture
def server(cloud: Cloud) -> Any:
    return with_mark(cloud)


def test_a_rescued_server_boots_the_image_beside_its_own_disk(cloud: AuditedCloud, server: Any) -> None:
    image = make_image(cloud)
    before = cloud.record(server, "cell1").launched_at
    own = driver_of(cloud, server).files.disks(server.id) / "disk"
    content = own.read_bytes()
    answer = ask(cloud.member, server, "rescue", {"adminPass": "chosen", "rescue_image_ref": image.id})
    assert (answer.status_code, answer.json()) == (200, {"adminPass": "chosen"})
    shown = cloud.wait(server, "RESCUE")
    assert (shown.vm_state, shown.task_state, shown.power_state) == ("rescued", None, 1)
    is_rescued(cloud, server)
    assert disks_of(cloud, server) == {"vda": "disk.rescue", "vdb": "disk"}
    # Whoever rescues it reads what it has; the rescue itself wrote nothing.
    assert MARK in guest_of(cloud, server).read("vdb") and own.read_bytes() == content
    record = cloud.record(server, "cell1")
    assert record.system_metadata[rescue.IMAGE] == image.id
    assert before is not None and record.launched_at is not None and record.launched_at > before
    assert cloud.events(server, "rescue") == [("compute_rescue_instance", "Success")]
    cloud.settle()
    assert cloud.audit().disagreements == []

    unrescued(cloud, server)
    has_its_own(cloud, server)
    assert cloud.events(server, "unrescue") == [("compute_unrescue_instance", "Success")]
    assert cloud.record(server, "cell1").launched_at == record.launched_at
    assert cloud.actions(server) == ["create", "rescue", "unrescue"]
    assert cloud.audit().disagreements == []


def test_without_an_image_its_own_is_used(cloud: Cloud, server: Any) -> None:
    answer = ask(cloud.member, server, "rescue")
    assert answer.status_code == 200 and len(answer.json()["adminPass"]) >= 12
    cloud.wait(server, "RESCUE")
    cloud.settle()
    assert cloud.record(server, "cell1").system_metadata[rescue.IMAGE] == cloud.image_id
    unrescued(cloud, server)
    has_its_own(cloud, server)


def test_no_password_is_shown_if_the_cloud_shows_none(cloud: Cloud, server: Any) -> None:
    cloud.option("enable_instance_password", False, "api")
    answer = ask(cloud.member, server, "rescue", {"adminPass": "chosen"})
    assert (answer.status_code, answer.json()) == (200, {})
    cloud.wait(server, "RESCUE")


def test_a_stopped_server_is_active_afterwards(cloud: Cloud, server: Any) -> None:
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    rescued(cloud, server)
    unrescued(cloud, server)
    has_its_own(cloud, server)


def test_one_in_error_is_rescued(cloud: Cloud, server: Any) -> None:
    assert ask(cloud.admin, server, "os-resetState", {"state": "error"}).status_code == 202
    rescued(cloud, server)
    is_rescued(cloud, server)
    unrescued(cloud, server)
    has_its_own(cloud, server)


def test_volumes_stay_attached_and_are_not_in_the_guest_meanwhile(cloud: AuditedCloud, server: Any) -> None:
    volume = cloud.volume()
    cloud.attach(server, volume)
    cloud.volume_becomes(volume, "in-use")
    cloud.settle()
    before = cloud.attachments(server)
    rescued(cloud, server)
    assert guest_of(cloud, server).volumes == []
    assert cloud.attachments(server) == before and cloud.audit().disagreements == []
    assert ask(cloud.member, server, "rescue").status_code == 409
    detach = cloud.member.compute.delete(f"/servers/{server.id}/os-volume_attachments/{volume.id}")
    assert detach.status_code == 409
    unrescued(cloud, server)
    assert [attached.volume_id for attached in guest_of(cloud, server).volumes] == [volume.id]
    cloud.detach(server, volume)


def test_a_volume_that_is_not_in_use_keeps_it_from_being_rescued(cloud: Cloud, server: Any) -> None:
    volume = cloud.volume()
    cloud.attach(server, volume)
    cloud.volume_becomes(volume, "in-use")
    cloud.admin.block_storage.reset_volume_status(volume.id, "error", None, None)
    answer = ask(cloud.member, server, "rescue")
    assert (answer.status_code, volume.id in message(answer), "error" in message(answer)) == (409, True, True)
    cloud.admin.block_storage.reset_volume_status(volume.id, "in-use", None, None)


class TestStableRescue:
    def test_all_disks_stay_in_place(self, cloud: AuditedCloud, server: Any) -> None:
        volume = cloud.volume()
        cloud.attach(server, volume)
        cloud.volume_becomes(volume, "in-use")
        cloud.settle()
        rescued(cloud, server, rescue_image_ref=make_image(cloud, hw_rescue_device="cdrom").id)
        is_rescued(cloud, server)
        assert disks_of(cloud, server) == {"vda": "disk", "vdc": "disk.rescue"}
        assert [attached.device for attached in guest_of(cloud, server).volumes] == ["vdb"]
        assert cloud.record(server, "cell1").system_metadata[rescue.DEVICE] == "cdrom"
        unrescued(cloud, server)
        has_its_own(cloud, server)
        cloud.detach(server, volume)

    def test_a_server_on_a_volume_is_rescued(self, cloud: AuditedCloud) -> None:
        server = cloud.boot_from_volume()
        driver_of(cloud, server).guest_write(server.id, MARK)
        image = make_image(cloud, **STABLE)
        cloud.settle()
        rescued(cloud, server, rescue_image_ref=image.id)
        is_rescued(cloud, server)
        assert disks_of(cloud, server) == {"vdb": "disk.rescue"}
        assert [attached.device for attached in guest_of(cloud, server).volumes] == ["vda"]
        assert cloud.audit().disagreements == []
        unrescued(cloud, server)
        has_its_own(cloud, server)
        assert cloud.audit().disagreements == []

    @pytest.mark.parametrize(
        ("version", "properties", "reason"),
        [
            ("2.86", STABLE, "Cannot rescue a volume-backed instance"),
            ("2.87", {}, "Cannot rescue a volume-backed instance"),
            ("2.87", {"hw_rescue_bus": "virtio"}, "Cannot rescue a volume-backed instance"),
            ("2.87", {"hw_rescue_device": "disk"}, "Cannot rescue a volume-backed instance"),
        ],
    )
    def test_servers_on_volumes_that_are_refused(
        self, cloud: Cloud, version: str, properties: dict[str, str], reason: str
    ) -> None:
        server = cloud.boot_from_volume()
        body = {"rescue_image_ref": make_image(cloud, **properties).id}
        answer = ask(cloud.member, server, "rescue", body, version)
        assert (answer.status_code, message(answer)) == (400, f"Instance {server.id} cannot be rescued: {reason}")
        assert cloud.show(server).status == "ACTIVE"

    def test_a_host_that_can_not(self, cloud: Cloud) -> None:
        server = cloud.boot_from_volume()
        image = make_image(cloud, **STABLE)
        host = cloud.show(server).compute_host
        (node,) = hosts.list_nodes(cloud.cell("cell1"), host=host)
        placement = cloud.parts.around.placement
        placement.change_traits(node.uuid, remove={os_traits.COMPUTE_RESCUE_BFV})
        answer = ask(cloud.member, server, "rescue", {"rescue_image_ref": image.id})
        assert answer.status_code == 400
        assert message(answer).endswith("Host unable to rescue a volume-backed instance")
        placement.change_traits(node.uuid, add={os_traits.COMPUTE_RESCUE_BFV})


class TestImages:
    @pytest.mark.parametrize("body", ["", {"adminPass": 1}, {"rescue_image_ref": "no uuid"}, {"colour": "red"}])
    def test_bad_bodies_are_refused(self, cloud: Cloud, server: Any, body: Any) -> None:
        assert ask(cloud.member, server, "rescue", body).status_code == 400

    def test_one_that_is_not_there(self, cloud: Cloud, server: Any) -> None:
        answer = ask(cloud.member, server, "rescue", {"rescue_image_ref": UNKNOWN})
        assert (answer.status_code, message(answer)) == (
            400,
            f"Requested rescue image '{UNKNOWN}' is not supported",
        )

    def test_an_image_without_data_is_refused(self, cloud: Cloud, server: Any) -> None:
        image = cloud.admin.image.create_image(
            name="empty", disk_format="raw", container_format="bare", visibility="public"
        )
        answer = ask(cloud.member, server, "rescue", {"rescue_image_ref": image.id})
        assert (answer.status_code, image.id in message(answer)) == (400, True)

    def test_an_image_of_a_server_on_volumes_is_refused(self, cloud: Cloud, server: Any) -> None:
        image = make_image(cloud, block_device_mapping='[{"boot_index": 0}]', bdm_v2="true")
        answer = ask(cloud.member, server, "rescue", {"rescue_image_ref": image.id})
        assert (answer.status_code, image.id in message(answer)) == (400, True)

    @pytest.mark.parametrize(
        "properties",
        [
            {"hw_rescue_device": "tape"},
            {"hw_rescue_bus": "apple"},
            {"hw_rescue_device": "cdrom", "hw_rescue_bus": "virtio"},
        ],
    )
    def test_an_image_that_wants_what_there_is_not_is_refused(
        self, cloud: Cloud, server: Any, properties: dict[str, str]
    ) -> None:
        image = make_image(cloud, **properties)
        answer = ask(cloud.member, server, "rescue", {"rescue_image_ref": image.id})
        assert (answer.status_code, image.id in message(answer)) == (400, True)

    def test_the_configured_image_is_used_where_none_is_known(self, cloud: Cloud) -> None:
        volume = cloud.volume(image_id=cloud.image_id)
        server = cloud.boot_from_volume(
            block_device_mapping=[
                {"boot_index": 0, "source_type": "volume", "destination_type": "volume", "uuid": volume.id}
            ]
        )
        cloud.settle()
        instances.update(cloud.cell("cell1"), server.id, image_ref="", image_meta=None)
        assert ask(cloud.member, server, "rescue").status_code == 400
        cloud.option("rescue_image_id", make_image(cloud, **STABLE).id, "libvirt")
        assert ask(cloud.member, server, "rescue").status_code == 200
        cloud.wait(server, "RESCUE")
        unrescued(cloud, server)


class TestStates:
    def test_what_may_be_done_to_a_rescued_server(self, cloud: AuditedCloud, server: Any) -> None:
        rescued(cloud, server)
        refused: dict[str, Any] = {
            "rescue": None,
            "os-start": None,
            "os-stop": None,
            "reboot": {"type": "HARD"},
            "pause": None,
            "suspend": None,
            "resize": {"flavorRef": "gen1.medium"},
            "migrate": None,
            "os-migrateLive": {"host": None, "block_migration": "auto"},
            "rebuild": {"imageRef": cloud.image_id},
            "shelve": None,
            "createImage": {"name": "picture"},
            "createBackup": {"name": "picture", "backup_type": "daily", "rotation": 1},
            "changePassword": {"adminPass": "secret"},
            "evacuate": {},
        }
        for action, body in refused.items():
            answer = ask(cloud.admin, server, action, body)
            assert (answer.status_code, "vm_state rescued" in message(answer)) == (409, True), (action, answer.text)
        assert ask(cloud.member, server, "trigger_crash_dump").status_code == 202
        assert ask(cloud.member, server, "os-getConsoleOutput", {}).status_code == 200
        cloud.member.compute.delete_server(server.id)
        cloud.member.compute.wait_for_delete(server)
        cloud.settle()
        host = server.compute_host or "cell1-host1"
        assert not any(cloud.driver(name).inspect(server.id).has_disks for name in cloud.parts.computes), host
        assert cloud.audit().disagreements == []

    @pytest.mark.parametrize(
        ("vm_state", "task_state", "action"),
        [
            (VmState.PAUSED, None, "rescue"),
            (VmState.SUSPENDED, None, "rescue"),
            (VmState.RESIZED, None, "rescue"),
            (VmState.SHELVED, None, "rescue"),
            (VmState.ACTIVE, TaskState.IMAGE_SNAPSHOT, "rescue"),
            (VmState.ACTIVE, None, "unrescue"),
            (VmState.RESCUED, TaskState.RESCUING, "unrescue"),
        ],
    )
    def test_where_it_may_not_begin(
        self, cloud: Cloud, server: Any, vm_state: VmState, task_state: TaskState | None, action: str
    ) -> None:
        database = cloud.cell("cell1")
        instances.update(database, server.id, vm_state=vm_state, task_state=task_state)
        answer = ask(cloud.member, server, action)
        what = f"vm_state {vm_state}" if task_state is None else f"task_state {task_state}"
        assert (answer.status_code, what in message(answer), action in message(answer)) == (409, True, True)
        instances.update(database, server.id, vm_state=VmState.ACTIVE, task_state=None)

    def test_only_administrators_rescue_locked_servers(self, cloud: Cloud, server: Any) -> None:
        assert ask(cloud.member, server, "lock").status_code == 202
        assert ask(cloud.member, server, "rescue").status_code == 409
        assert ask(cloud.admin, server, "rescue").status_code == 200
        cloud.wait(server, "RESCUE")
        assert ask(cloud.member, server, "unrescue").status_code == 409

    def test_a_vtpm_is_reported_first_of_all(self, cloud: Cloud, server: Any) -> None:
        record = cloud.record(server, "cell1")
        record.flavor.extra_specs["hw:tpm_version"] = "2.0"
        instances.update(cloud.cell("cell1"), server.id, flavor=record.flavor, vm_state=VmState.PAUSED)
        answer = ask(cloud.member, server, "rescue")
        assert (answer.status_code, "vTPM" in message(answer)) == (400, True)
        instances.update(cloud.cell("cell1"), server.id, vm_state=VmState.ACTIVE)

    def test_a_rescued_server_whose_state_is_reset_is_started_from_its_own_disk(
        self, cloud: AuditedCloud, server: Any
    ) -> None:
        """Then its record says that it is not rescued: it comes up from its own disk."""
        rescued(cloud, server)
        assert ask(cloud.admin, server, "os-resetState", {"state": "active"}).status_code == 202
        assert ask(cloud.member, server, "reboot", {"type": "HARD"}).status_code == 202
        cloud.wait(server, "ACTIVE")
        cloud.settle()
        guest = guest_of(cloud, server)
        assert not guest.is_rescued and MARK in guest.read("vda")
        assert not driver_of(cloud, server).has_rescue_disk(server.id)
        assert cloud.audit().disagreements == []

    def test_a_rescued_server_whose_guest_goes_off_stays_rescued(self, cloud: Cloud, server: Any) -> None:
        rescued(cloud, server)
        host = cloud.show(server).compute_host
        cloud.driver(host).power_off(server.id, 0)
        instances.update(cloud.cell("cell1"), server.id, updated_at=None)
        cloud.report(host)
        shown = cloud.show(server)
        assert shown.status == "RESCUE"
        unrescued(cloud, server)
        has_its_own(cloud, server)

    @pytest.mark.embedded("a compute reads its files again")
    def test_the_compute_starts_again(self, cloud: Cloud, server: Any) -> None:
        rescued(cloud, server)
        files = driver_of(cloud, server).files
        files.load()
        is_rescued(cloud, server)
        assert guest_of(cloud, server).power_state is PowerState.RUNNING
        unrescued(cloud, server)
        has_its_own(cloud, server)


@pytest.mark.embedded("does what a conductor does, when the test says so")
def test_a_rescue_ends_when_its_time_is_over(cloud: Cloud, server: Any) -> None:
    rescued(cloud, server)
    services, conductor = cloud.embedded.conductor._services, cloud.embedded.conductor._conductor
    overdue_rescues.unrescue(services, conductor)
    cloud.settle()
    assert cloud.show(server).status == "RESCUE"
    known = cloud.record(server, "cell1").system_metadata
    instances.update(cloud.cell("cell1"), server.id, system_metadata=known | {rescue.SINCE: "2020-01-01T00:00:00"})
    overdue_rescues.unrescue(services, conductor)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    has_its_own(cloud, server)
    assert cloud.actions(server)[-1] == "unrescue"

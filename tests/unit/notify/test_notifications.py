"""What is notified, to whom, in whose name: Nova's events, publishers and payload objects."""

from __future__ import annotations

import dataclasses
import uuid
from datetime import datetime
from typing import Any

import pytest

from causeway import errors
from causeway.conf import new_config
from causeway.context import RequestContext, admin_context
from causeway.model.block_device import BlockDevice
from causeway.model.drains import Drain, DrainRequest, DrainServer, How, Scope
from causeway.model.flavor import Flavor
from causeway.model.host import Aggregate, ServerGroup, Service
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance, KeyPair
from causeway.model.states import PowerState, TaskState, VmState
from causeway.notify.notifier import Notifier
from causeway.scheduler.request import Destination, RequestedGroup, RequestSpec
from tests.unit.notify.conftest import SERVER

# Nova's fields, by payload object.
FLAVOR = (
    "flavorid memory_mb vcpus root_gb ephemeral_gb name swap rxtx_factor vcpu_weight disabled is_public extra_specs \
projects description"
)
INSTANCE = (
    "uuid user_id tenant_id reservation_id display_name display_description host_name host node os_type architecture \
availability_zone flavor image_uuid key_name kernel_id ramdisk_id created_at launched_at terminated_at deleted_at \
updated_at state power_state task_state progress ip_addresses block_devices metadata locked auto_disk_config request_id \
action_initiator_user action_initiator_project locked_reason shares"
)
REQUEST_SPEC = "instance_uuid project_id user_id availability_zone flavor force_hosts force_nodes ignore_hosts image_meta \
instance_group image numa_topology pci_requests num_instances requested_destination retry scheduler_hints security_groups"

DRAIN = Drain(id="d", request=DrainRequest("empty cell1", Scope(cells=["cell1"])))


def reported(listening: Any, notify: Any, **options: Any) -> Any:
    """The one message that comes of ``notify(notifier)``."""
    notifier, ear = listening(**options)
    notify(notifier)
    (heard,) = ear.all(1)
    return heard


@pytest.mark.parametrize(
    ("action", "extra", "name", "more_fields"),
    [
        ("resize", {}, ("InstanceActionPayload", "1.9"), "fault"),
        ("resize_prep", {}, ("InstanceActionResizePrepPayload", "1.4"), "fault new_flavor"),
        ("volume_attach", {"volume_id": "v"}, ("InstanceActionVolumePayload", "1.7"), "fault volume_id"),
        ("snapshot", {"snapshot_image_id": "i"}, ("InstanceActionSnapshotPayload", "1.10"), "fault snapshot_image_id"),
        (
            "create",
            {},
            ("InstanceCreatePayload", "1.13"),
            "fault keypairs tags trusted_image_certificates instance_name",
        ),
        ("rebuild", {}, ("InstanceActionRebuildPayload", "1.10"), "fault trusted_image_certificates"),
    ],
)
def test_actions_have_novas_payloads(
    listening: Any, context: RequestContext, instance: Instance, action: str, extra: Any, name: Any, more_fields: str
) -> None:
    heard = reported(listening, lambda n: n.instance_action(context, instance, action, "start", host="host9", **extra))
    assert heard.event_type == f"instance.{action}.start"
    assert (heard.publisher_id, heard.priority) == ("nova-compute:host9", "info")
    assert heard.name == name
    assert heard.payload["nova_object.namespace"] == "nova"
    assert set(heard.data) == {*INSTANCE.split(), *more_fields.split()}
    assert set(heard.data["flavor"]["nova_object.data"]) == set(FLAVOR.split())
    assert heard.data["flavor"]["nova_object.version"] == "1.4"


def test_payloads_have_novas_words_times_and_addresses(
    listening: Any, context: RequestContext, instance: Instance
) -> None:
    instance.launched_at = datetime(2026, 8, 1, 12, 0, 0, 999)
    instance.task_state = TaskState.RESIZE_PREP
    data = reported(listening, lambda n: n.instance_action(context, instance, "resize", "start", host="h")).data
    assert (data["power_state"], data["state"], data["task_state"]) == ("running", "active", "resize_prep")
    assert (data["launched_at"], data["terminated_at"]) == ("2026-08-01T12:00:00Z", None)
    assert data["auto_disk_config"] == "MANUAL"
    addresses = [ip["nova_object.data"] for ip in data["ip_addresses"]]
    assert [(ip["address"], ip["version"], ip["label"]) for ip in addresses] == [
        ("10.0.0.5", 4, "demo-net"),
        ("fd00::5", 6, "demo-net"),
    ]
    assert set(addresses[0]) == {"label", "mac", "meta", "port_uuid", "version", "address", "device_name"}


@pytest.mark.parametrize("state", PowerState)
def test_every_power_state_has_a_word(
    listening: Any, context: RequestContext, instance: Instance, state: PowerState
) -> None:
    instance.power_state = state
    heard = reported(listening, lambda n: n.instance_action(context, instance, "power_off", "end", host="h"))
    assert heard.data["power_state"] == {0: "pending"}.get(state.value, state.name.lower())


def test_the_caller_is_recorded_not_the_owner(listening: Any, context: RequestContext, instance: Instance) -> None:
    data = reported(listening, lambda n: n.instance_action(context, instance, "resize", "start", host="h")).data
    assert (data["action_initiator_user"], data["action_initiator_project"]) == ("asker", "askers")
    assert (data["user_id"], data["tenant_id"], data["request_id"]) == ("owner", "owners", "req-1")


def test_periodic_tasks_have_no_request(listening: Any, instance: Instance) -> None:
    data = reported(
        listening, lambda n: n.instance_action(admin_context(), instance, "resize_confirm", "end", host="h")
    ).data
    assert data["request_id"] is None


def test_tokens_are_not_shown(listening: Any, context: RequestContext, instance: Instance) -> None:
    heard = reported(listening, lambda n: n.instance_action(context, instance, "resize", "start", host="h"))
    assert heard.context["request_id"] == "req-1", heard.context
    assert "secret-token" not in repr(heard)


def test_block_devices_are_volumes_where_they_are_at_hand(
    listening: Any, context: RequestContext, instance: Instance, block_devices: list[BlockDevice]
) -> None:
    notifier, ear = listening()
    notifier.instance_action(context, instance, "resize", "start", host="h", block_devices=block_devices)
    notifier.instance_action(context, instance, "resize_confirm", "start", host="h")
    given, missing = ear.all(2)
    (device,) = given.data["block_devices"]
    assert device["nova_object.name"] == "BlockDevicePayload"
    assert device["nova_object.data"] == {
        "device_name": "/dev/vdb",
        "boot_index": None,
        "delete_on_termination": False,
        "volume_id": block_devices[1].volume_id,
        "tag": "data",
    }
    assert missing.data["block_devices"] is None


def test_block_devices_are_looked_up_if_it_is_configured(
    listening: Any, context: RequestContext, instance: Instance, block_devices: list[BlockDevice]
) -> None:
    asked = {"block_devices_of": lambda _instance: block_devices}
    heard = reported(
        listening,
        lambda n: n.instance_action(context, instance, "resize_confirm", "start", host="h"),
        bdms_in_notifications=True,
        **asked,
    )
    assert len(heard.data["block_devices"]) == 1


def test_an_event_whose_block_devices_can_not_be_looked_up_has_none(
    listening: Any, context: RequestContext, instance: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(_instance: Instance) -> list[BlockDevice]:
        raise errors.DatabaseFailed("The database of cell1 does not answer.")

    heard = reported(
        listening,
        lambda n: n.instance_action(context, instance, "resize_confirm", "start", host="h"),
        bdms_in_notifications=True,
        block_devices_of=fails,
    )
    assert heard.data["block_devices"] is None
    assert f"Server {instance.uuid} is notified without its block devices" in caplog.text


def test_volumes_that_are_still_to_be_made_are_not_shown(
    listening: Any, context: RequestContext, instance: Instance
) -> None:
    new = [BlockDevice("3", SERVER, "image", "volume", boot_index=0)]
    heard = reported(
        listening, lambda n: n.instance_action(context, instance, "x", "start", host="h", block_devices=new)
    )
    assert heard.data["block_devices"] == []


def test_resize_prep_has_the_new_flavor(
    listening: Any, context: RequestContext, instance: Instance, flavor: Flavor
) -> None:
    new = dataclasses.replace(flavor, name="gen2.small", vcpus=2)
    heard = reported(
        listening,
        lambda n: n.instance_action(context, instance, "resize_prep", "start", host="h", new_flavor=new),
    )
    assert heard.data["flavor"]["nova_object.data"]["name"] == "gen1.small"
    assert heard.data["new_flavor"]["nova_object.data"]["vcpus"] == 2


def test_a_fault_is_the_error_as_it_was_raised(listening: Any, context: RequestContext, instance: Instance) -> None:
    def deep_inside() -> None:
        raise errors.GuestFailed("No such machine type. password=hunter2")

    try:
        deep_inside()
    except errors.GuestFailed as caught:
        error = caught
    heard = reported(
        listening, lambda n: n.instance_action(context, instance, "resize", "error", host="h", fault=error)
    )
    assert heard.priority == "error"
    fault = heard.data["fault"]
    assert (fault["nova_object.name"], fault["nova_object.version"]) == ("ExceptionPayload", "1.1")
    said = fault["nova_object.data"]
    assert (said["exception"], said["function_name"], said["module_name"]) == ("GuestFailed", "deep_inside", __name__)
    assert "in deep_inside" in said["traceback"]
    assert "No such machine type" in said["exception_message"]
    assert "hunter2" not in repr(said)


def test_an_error_that_came_over_rpc_is_notified_without_traceback(
    listening: Any, context: RequestContext, instance: Instance
) -> None:
    error = errors.from_wire(errors.GuestFailed("broken").to_wire())
    heard = reported(
        listening,
        lambda n: n.compute_task_error(
            context, "migrate_server", instance_uuid=instance.uuid, state=VmState.ACTIVE, error=error
        ),
    )
    assert (heard.event_type, heard.priority) == ("compute_task.migrate_server.error", "error")
    assert heard.publisher_id == "nova-api:controller"
    assert heard.name == ("ComputeTaskPayload", "1.0")
    assert set(heard.data) == {"instance_uuid", "request_spec", "state", "reason"}
    assert heard.data["state"] == "active"
    assert heard.data["reason"]["nova_object.data"]["exception_message"] == "broken"


def test_exists_has_the_current_period(listening: Any, context: RequestContext, instance: Instance) -> None:
    heard = reported(listening, lambda n: n.instance_exists(context, instance, host="h"))
    assert (heard.event_type, heard.name) == ("instance.exists", ("InstanceExistsPayload", "2.1"))
    assert set(heard.data) == {*INSTANCE.split(), "audit_period"}
    period = heard.data["audit_period"]["nova_object.data"]
    assert period["audit_period_beginning"].endswith("-01T00:00:00Z")
    assert period["audit_period_beginning"] <= period["audit_period_ending"]


def test_updates_are_notified_as_configured(listening: Any, context: RequestContext, instance: Instance) -> None:
    instance.task_state = TaskState.RESIZE_PREP
    notifier, ear = listening(notify_on_state_change="vm_state")
    notifier.instance_update(context, instance, old_vm_state=VmState.ACTIVE, old_task_state=None)
    notifier.instance_update(context, instance, old_vm_state=VmState.STOPPED, old_task_state=None)
    (heard,) = ear.all(1)
    assert (heard.event_type, heard.name) == ("instance.update", ("InstanceUpdatePayload", "2.1"))
    assert set(heard.data) == {*INSTANCE.split(), "state_update", "audit_period", "old_display_name", "tags"}
    assert heard.data["state_update"]["nova_object.data"] == {
        "old_state": "stopped",
        "state": "active",
        "old_task_state": None,
        "new_task_state": "resize_prep",
    }


def test_task_states_are_notified_if_that_is_wanted(
    listening: Any, context: RequestContext, instance: Instance
) -> None:
    instance.task_state = TaskState.RESIZE_PREP
    heard = reported(
        listening,
        lambda n: n.instance_update(context, instance, old_vm_state=VmState.ACTIVE),
        notify_on_state_change="vm_and_task_state",
    )
    assert heard.publisher_id == "nova-api:controller"


def test_the_scheduler_notifies_of_what_was_asked(listening: Any, context: RequestContext, flavor: Flavor) -> None:
    spec = RequestSpec(
        str(uuid.uuid4()),
        "owners",
        "owner",
        flavor,
        image=ImageMeta("i", properties={"hw_disk_bus": "virtio", "note": "own"}),
        server_group=RequestedGroup("g", "anti-affinity"),
        requested_destination=Destination(host="h", cell="c"),
    )
    heard = reported(listening, lambda n: n.select_destinations(context, spec, "start"))
    assert (heard.event_type, heard.name) == ("scheduler.select_destinations.start", ("RequestSpecPayload", "1.1"))
    assert set(heard.data) == set(REQUEST_SPEC.split())
    image = heard.data["image"]["nova_object.data"]
    assert image["properties"]["nova_object.data"] == {"hw_disk_bus": "virtio"}
    assert heard.data["requested_destination"]["nova_object.data"]["host"] == "h"


@pytest.mark.parametrize(
    ("notify", "event", "name", "fields"),
    [
        (
            lambda n, c: n.flavor(c, Flavor("1", "f", 1, 1, 1), "create", projects=["p"]),
            "flavor.create",
            ("FlavorPayload", "1.4"),
            FLAVOR,
        ),
        (
            lambda n, c: n.keypair(c, KeyPair("k", "u", "ssh", "aa"), "import", "end"),
            "keypair.import.end",
            ("KeypairPayload", "1.0"),
            "user_id name fingerprint public_key type",
        ),
        (
            lambda n, c: n.aggregate(c, Aggregate("u", "gen1", ["h"], {"gen": "1"}, id=1), "add_host", "start"),
            "aggregate.add_host.start",
            ("AggregatePayload", "1.1"),
            "id uuid name hosts metadata",
        ),
        (
            lambda n, c: n.server_group(c, ServerGroup("u", "g", "p", "u", "affinity"), "create"),
            "server_group.create",
            ("ServerGroupPayload", "1.1"),
            "uuid name user_id project_id policies members hosts policy rules",
        ),
        (
            lambda n, c: n.service(c, Service("u", "host1", "nova-compute"), "update"),
            "service.update",
            ("ServiceStatusPayload", "1.1"),
            "host binary topic report_count disabled disabled_reason availability_zone last_seen_up forced_down version uuid",
        ),
        (
            lambda n, c: n.drain(c, DRAIN, "start"),
            "causeway.drain.start",
            ("DrainPayload", "1.0"),
            "uuid name state note reason scope targets limits deadline closed_hosts user_id project_id created_at started_at"
            " ended_at",
        ),
        (
            lambda n, c: n.drain_server(c, DRAIN, DrainServer(drain_id="d", instance_uuid="i", how=How.LIVE), "end"),
            "causeway.drain.server.end",
            ("DrainServerPayload", "1.0"),
            "drain_uuid drain_name reason instance_uuid display_name project_id state how source_cell source_host target_cell"
            " target_host flavor new_flavor why attempts request_id began_at ended_at",
        ),
    ],
)
def test_each_resource_is_notified_with_its_fields(
    listening: Any, context: RequestContext, notify: Any, event: str, name: Any, fields: str
) -> None:
    heard = reported(listening, lambda notifier: notify(notifier, context))
    assert (heard.event_type, heard.name) == (event, name)
    assert set(heard.data) == set(fields.split())
    expected = "nova-compute:host1" if event == "service.update" else "nova-api:controller"
    assert heard.publisher_id == expected


def test_events_arrive_in_order_on_every_topic(listening: Any, context: RequestContext, instance: Instance) -> None:
    notifier, ear = listening(versioned_notifications_topics=["one", "two"])
    for phase in ("start", "end"):
        notifier.instance_action(context, instance, "resize", phase, host="h")
    heard = [each.event_type for each in ear.all(4)]
    assert sorted(heard) == ["instance.resize.end"] * 2 + ["instance.resize.start"] * 2
    assert heard[0] == "instance.resize.start"


@pytest.mark.parametrize("settings", [{}, {"notification_format": "unversioned"}, {"notification_format": "versioned"}])
def test_nothing_is_built_that_nobody_wants(context: RequestContext, settings: Any) -> None:
    notifier = Notifier("causeway-memory://silent", "nova-api:c", new_config(notifications=settings))
    assert not notifier.is_enabled
    notifier.instance_action(context, None, "resize", "start", host="h")  # type: ignore[arg-type]
    notifier.close()


class _Broken:
    """An oslo.messaging notifier whose bus is gone."""

    def prepare(self, **_options: Any) -> _Broken:
        return self

    def info(self, *_message: Any) -> None:
        raise ConnectionError("no route to host")


def test_a_broken_bus_breaks_nothing_and_is_counted(
    listening: Any, context: RequestContext, instance: Instance, caplog: pytest.LogCaptureFixture
) -> None:
    notifier, _ear = listening()
    notifier._sender._notifier = _Broken()
    notifier.instance_action(context, instance, "resize", "start", host="h")
    notifier.flush()
    assert notifier.counts == {"failed": 1}
    assert "instance.resize.start could not be sent: ConnectionError: no route to host" in caplog.text


def test_what_comes_after_the_end_is_discarded(listening: Any, context: RequestContext, instance: Instance) -> None:
    notifier, _ear = listening()
    notifier.close()
    notifier.instance_action(context, instance, "resize", "start", host="h")
    assert notifier.counts == {"dropped": 1}

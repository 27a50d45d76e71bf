"""What a server's records say while it moves and afterwards: nothing is lost on the way, neither there nor back."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from causeway.errors import DatabaseFailed
from causeway.model.instance import InstanceFault
from causeway.store.api import mappings
from causeway.store.cell import actions, copies, instances
from tests.functional.servers.moves_cloud import Cloud

# What the resize itself changes; everything else of both records is the same.
CHANGED = frozenset(
    {
        *("host", "node", "availability_zone", "flavor", "vm_state", "task_state", "power_state", "progress"),
        *("network_info", "hidden", "updated_at", "launched_at"),
    }
)


def rich_server(cloud: Cloud) -> Any:
    """A server with everything that a server can have."""
    name = "key-of-the-test"
    if cloud.member.compute.find_keypair(name) is None:
        public_key = Ed25519PrivateKey.generate().public_key()
        line = public_key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
        cloud.member.compute.create_keypair(name=name, public_key=line)
    body = {
        "name": "rich",
        "flavorRef": "gen1.small",
        "imageRef": cloud.image_id,
        "networks": [{"uuid": cloud.network_id}],
        "key_name": name,
        "metadata": {"purpose": "test"},
        "description": "has everything",
        "tags": ["blue", "green"],
        "user_data": base64.b64encode(b"#cloud-config").decode(),
        "config_drive": True,
        "OS-DCF:diskConfig": "MANUAL",
        "accessIPv4": "192.0.2.7",
        "personality": [{"path": "/etc/motd", "contents": base64.b64encode(b"hello").decode()}],
    }
    tags = body.pop("tags")
    answer = cloud.member.compute.post("/servers", json={"server": body}, microversion="2.56")
    assert answer.status_code == 202, answer.text
    server = cloud.wait(cloud.member.compute.get_server(answer.json()["server"]["id"]), "ACTIVE")
    cloud.member.compute.put(f"/servers/{server.id}/tags", json={"tags": tags}, microversion="2.26")
    # A history with a failure in it.
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    actions.add_fault(cloud.cell("cell1"), server.id, InstanceFault(500, "an old fault", "its details", "cell1-host1"))
    return cloud.show(server)


def fields(bundle: copies.Bundle) -> dict[str, Any]:
    known: dict[str, Any] = msgspec.to_builtins(bundle.instance)
    return {name: value for name, value in known.items() if name not in CHANGED}


def config_drive(cloud: Cloud, server: Any) -> dict[str, bytes]:
    host = cloud.show(server).compute_host
    path = cloud.parts.state.host(host) / "instances" / server.id / "disk.config"
    return msgspec.json.decode(path.read_bytes(), type=dict[str, bytes])


def test_both_copies_hold_the_same_while_the_resize_waits_for_its_end(cloud: Cloud) -> None:
    server = rich_server(cloud)
    drive = config_drive(cloud, server)
    cloud.resized(server)
    cloud.settle()
    source, target = (copies.read(cloud.cell(cell), server.id) for cell in ("cell1", "cell2"))

    assert (source.instance.hidden, target.instance.hidden) == (True, False)
    assert fields(target) == fields(source)
    assert target.instance.keypairs and target.instance.injected_files and target.instance.user_data
    assert target.instance.created_at is not None
    assert target.faults == source.faults and [fault.message for fault in target.faults] == ["an old fault"]
    histories = [
        [(each.action, each.request_id, each.start_time) for each in bundle.actions] for bundle in (source, target)
    ]
    assert histories[0] == histories[1]
    assert [each.action for each in target.actions] == ["create", "stop", "start", "resize"]
    assert all(each.events for each in target.actions)
    assert [each.events for each in target.actions[:-1]] == [each.events for each in source.actions[:-1]]
    without = {"attachment_id", "connection_info"}
    devices = [
        [{k: v for k, v in dataclasses.asdict(device).items() if k not in without} for device in bundle.block_devices]
        for bundle in (source, target)
    ]
    assert devices[0] == devices[1]
    there = config_drive(cloud, server)
    assert there["openstack/content/0000"] == b"hello" == drive["openstack/content/0000"]
    assert there["openstack/latest/user_data"] == b"#cloud-config"
    assert b"ssh-ed25519" in there["openstack/latest/meta_data.json"]


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_what_users_see_of_a_server_stays(cloud: Cloud, end: str) -> None:
    server = rich_server(cloud)
    before = server.to_dict()
    cloud.resized(server)
    after = (cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)).to_dict()

    changes = {"updated_at", "launched_at", "location"}
    if end == "confirm":
        changes |= {
            *("flavor", "compute_host", "host_id", "hypervisor_hostname", "availability_zone"),
            *("OS-EXT-SRV-ATTR:host", "hostId", "OS-EXT-SRV-ATTR:hypervisor_hostname"),
        }
    assert {name for name, value in after.items() if before[name] != value} <= changes
    assert after["image"]["id"] == cloud.image_id
    assert cloud.actions(server) == ["create", "stop", "start", "resize", f"{end}Resize"]


def test_what_was_changed_while_verifying_survives_a_revert(cloud: Cloud) -> None:
    server = rich_server(cloud)
    cloud.resized(server)
    cloud.member.compute.update_server(server.id, name="renamed", description="changed", hostname="other-host")
    volume = cloud.volume()
    cloud.attach(server, volume)
    cloud.detach(server, volume)
    cloud.member.compute.lock_server(server.id, locked_reason="look before you leap")
    cloud.admin.compute.revert_server_resize(server.id)
    after = cloud.wait(server, "ACTIVE")
    cloud.settle()

    assert (after.name, after.description, after.hostname) == ("renamed", "changed", "other-host")
    assert (after.is_locked, after.locked_reason) == (True, "look before you leap")
    assert cloud.actions(server) == [
        *("create", "stop", "start", "resize", "attach_volume", "detach_volume", "lock", "revertResize")
    ]
    assert dict(cloud.events(server, "attach_volume")) == {
        "compute_reserve_block_device_name": "Success",
        "compute_attach_volume": "Success",
    }
    assert ("compute_finish_snapshot_based_resize_at_dest", "Success") in cloud.events(server, "resize")
    assert cloud.events(server, "revertResize") == [
        ("conductor_revert_snapshot_based_resize", "Success"),
        ("compute_revert_snapshot_based_resize_at_dest", "Success"),
        ("compute_finish_revert_snapshot_based_resize_at_source", "Success"),
    ]
    assert [fault.message for fault in cloud.faults(server)] == ["an old fault"]
    record = cloud.record(server, "cell1")
    assert (record.migration_context, record.old_flavor, record.new_flavor, record.old_vm_state) == (None,) * 4
    cloud.admin.compute.unlock_server(server.id)


def test_after_a_revert_later_moves_start_from_the_old_flavor(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    assert mappings.get_spec(cloud.parts.api_database, server.id)["flavor"]["name"] == "gen2.small"
    cloud.reverted(server)
    assert mappings.get_spec(cloud.parts.api_database, server.id)["flavor"]["name"] == "gen1.small"


def test_the_events_of_a_move_name_its_steps(cloud: Cloud) -> None:
    server = cloud.boot()
    cloud.resized(server)
    assert cloud.events(server, "resize") == [
        ("conductor_migrate_server", "Success"),
        ("cold_migrate", "Success"),
        ("compute_prep_snapshot_based_resize_at_dest", "Success"),
        ("compute_prep_snapshot_based_resize_at_source", "Success"),
        ("compute_finish_snapshot_based_resize_at_dest", "Success"),
    ]
    assert cloud.action(server, "resize").message is None
    cloud.confirmed(server)
    assert cloud.events(server, "confirmResize") == [
        ("conductor_confirm_snapshot_based_resize", "Success"),
        ("compute_confirm_snapshot_based_resize_at_source", "Success"),
    ]


def test_the_guest_has_the_same_name_on_both_hosts(cloud: Cloud) -> None:
    server = cloud.show(cloud.boot())
    moved = cloud.resized(server)
    assert moved.instance_name == server.instance_name == f"instance-{server.id}"


def test_the_targets_records_are_written_whole_or_not_at_all(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    before = cloud.reality(server)
    works = actions.insert_history
    seen: list[int] = []

    def breaks(connection: sa.Connection, history: list[Any]) -> None:
        if connection.engine.url == cloud.cell("cell2").url:
            seen.append(connection.execute(sa.select(sa.func.count()).select_from(instances.TABLE)).scalar_one())
            raise DatabaseFailed("The database of cell2 stopped in the middle.")
        works(connection, history)

    monkeypatch.setattr(actions, "insert_history", breaks)
    cloud.without_patience()
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert seen, "the failure came before anything had been written"
    assert not copies.exists(cloud.cell("cell2"), server.id)
    assert cloud.reality(server) == before


def test_a_hidden_flag_that_is_null_means_not_hidden(cloud: Cloud) -> None:
    server = cloud.boot()
    with cloud.cell("cell1").write() as connection:
        connection.execute(sa.update(instances.TABLE).where(instances.TABLE.c.uuid == server.id).values(hidden=None))
    assert [found.id for found in cloud.member.compute.servers()] == [server.id]
    cloud.resized(server)
    assert [found.id for found in cloud.member.compute.servers()] == [server.id]
    assert instances.usage(cloud.cell("cell1"), server.project_id).settled[0] == 0

"""Encrypted volumes: who is given their keys, where the keys get, and that a server stays where it is without them."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from openstack import exceptions

from causeway.devcloud.key_manager import secrets
from causeway.devcloud.tables.key import Secret
from causeway.errors import Forbidden
from causeway.model.volume_keys import VolumeKey
from tests.functional.live.live_cloud import ONE_NETWORK, LiveCloud
from tests.functional.servers.moves_cloud import until

CLOUD = {"overrides": {"simulated": ONE_NETWORK}}
LUKS, LUKS2 = "luks", "luks2"


@pytest.fixture(autouse=True, scope="module")
def types(module_cloud: LiveCloud) -> None:
    for name in (LUKS, LUKS2):
        made = module_cloud.admin.block_storage.create_type(name=name)
        module_cloud.admin.block_storage.create_type_encryption(
            made, provider=name, cipher="aes-xts-plain64", key_size=256, control_location="front-end"
        )


@pytest.fixture
def only_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """No policy of the key manager lets the conductors' own account have keys of others."""
    monkeypatch.setattr(secrets, "is_key_reader", lambda _caller: False)


def passphrase(cloud: LiveCloud, volume: Any) -> str:
    """As the key manager has it."""
    key_id = encryption(cloud, volume)["encryption_key_id"]
    with cloud.embedded.devcloud.store.transaction() as session:
        found = session.get(Secret, key_id)
        assert found is not None
        return base64.b64decode(found.payload).hex()


def encryption(cloud: LiveCloud, volume: Any) -> Any:
    return cloud.member.block_storage.get(f"/volumes/{volume.id}/encryption").json()


def keys_at(cloud: LiveCloud, host: str) -> dict[str, str]:
    return dict(cloud.driver(host).volume_keys)


def attached(cloud: LiveCloud, flavor: str = "gen1.small") -> tuple[Any, Any]:
    server, volume = cloud.boot(flavor=flavor), cloud.volume(volume_type=LUKS)
    cloud.attach(server, volume)
    cloud.volume_becomes(volume, "in-use")
    return server, volume


def delete_key(cloud: LiveCloud, volume: Any) -> None:
    key_id = encryption(cloud, volume)["encryption_key_id"]
    with cloud.embedded.devcloud.store.transaction() as session:
        session.delete(session.get(Secret, key_id))


@pytest.fixture
def records(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.DEBUG):
        yield caplog


def test_a_guest_has_an_encrypted_volume_and_its_key_is_nowhere_else(
    cloud: LiveCloud, records: pytest.LogCaptureFixture
) -> None:
    server, volume = attached(cloud)
    key, host = passphrase(cloud, volume), cloud.host_of(server)
    assert keys_at(cloud, host) == {volume.id: key}
    cloud.driver(host).guest_write(server.id, "plain", "vdb")
    assert "plain" in cloud.driver(host).guest_read(server.id, "vdb")

    forms = [key, base64.b64encode(bytes.fromhex(key)).decode(), repr(bytes.fromhex(key))]
    said = "\n".join(record.getMessage() for record in records.records)
    assert [form for form in forms if form in said] == []
    # The key manager's own store has it; and a guest's volume is not where keys are looked for.
    for path in cloud.parts.state.path.rglob("*"):
        if path.is_file() and "devcloud" not in path.name and "volumes" not in path.parts:
            content = path.read_bytes()
            assert [form for form in forms if form.encode() in content] == [], path

    cloud.detach(server, volume)
    assert keys_at(cloud, host) == {}


@pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_the_key_goes_where_the_guest_goes_and_stays_nowhere_else(cloud: LiveCloud, flavor: str, end: str) -> None:
    server, volume = attached(cloud)
    source, key = cloud.host_of(server), passphrase(cloud, volume)
    target = cloud.resized(server, flavor).compute_host
    assert (keys_at(cloud, source), keys_at(cloud, target)) == ({}, {volume.id: key})
    after = cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)
    other = source if end == "confirm" else target
    assert after.compute_host != other
    assert (keys_at(cloud, after.compute_host), keys_at(cloud, other)) == ({volume.id: key}, {})


def test_a_live_migration_to_another_cell_takes_an_encrypted_volume_along(cloud: LiveCloud) -> None:
    server, volume = attached(cloud, "any.medium")
    source = cloud.host_of(server)
    there = "cell2-host1" if source.startswith("cell1") else "cell1-host1"
    after = cloud.migrated(server, host=there)
    assert (after.status, after.compute_host) == ("ACTIVE", there)
    assert (list(keys_at(cloud, source)), list(keys_at(cloud, there))) == ([], [volume.id])


@pytest.mark.usefixtures("only_users")
@pytest.mark.parametrize(
    "act", ["hard reboot", "stop and start", "suspend and resume", "shelve and unshelve", "resize", "boot from it"]
)
def test_what_users_ask_for_is_done_with_their_own_rights_to_the_key(cloud: LiveCloud, act: str) -> None:
    compute = cloud.member.compute
    if act == "boot from it":
        root = cloud.volume(volume_type=LUKS, image_id=cloud.image_id)
        device = {"boot_index": 0, "uuid": root.id, "source_type": "volume", "destination_type": "volume"}
        server = cloud.boot(image_id="", block_device_mapping=[device])
        assert list(keys_at(cloud, cloud.host_of(server))) == [root.id]
        return
    server, volume = attached(cloud)
    cloud.driver(cloud.host_of(server)).volume_keys.clear()
    if act == "hard reboot":
        compute.reboot_server(server, "HARD")
        cloud.wait(server, "ACTIVE")
    elif act == "stop and start":
        compute.stop_server(server)
        cloud.wait(server, "SHUTOFF")
        compute.start_server(server)
        cloud.wait(server, "ACTIVE")
    elif act == "suspend and resume":
        compute.suspend_server(server)
        cloud.wait(server, "SUSPENDED")
        compute.resume_server(server)
        cloud.wait(server, "ACTIVE")
    elif act == "shelve and unshelve":
        compute.shelve_server(server)
        cloud.wait(server, "SHELVED_OFFLOADED")
        compute.unshelve_server(server)
        cloud.wait(server, "ACTIVE")
    else:
        cloud.resized(server)
    assert list(keys_at(cloud, cloud.host_of(server))) == [volume.id]


def test_an_administrator_of_another_project_moves_a_server_with_the_conductors_own_account(cloud: LiveCloud) -> None:
    server, volume = attached(cloud)
    source, elsewhere = cloud.host_of(server), cloud.connection("admin", "admin")
    elsewhere.compute.migrate_server(server)
    moved = cloud.wait(server, "VERIFY_RESIZE")
    assert moved.compute_host != source
    assert list(keys_at(cloud, moved.compute_host)) == [volume.id]


@pytest.mark.usefixtures("only_users")
@pytest.mark.parametrize("how", ["cold", "live"])
def test_a_guest_runs_on_where_it_is_if_nobody_may_read_the_key_for_its_move(cloud: LiveCloud, how: str) -> None:
    server, _ = attached(cloud)
    source, elsewhere = cloud.host_of(server), cloud.connection("admin", "admin")
    boots = [line for line in cloud.driver(source).guest_read(server.id) if line.startswith("boot=")]
    if how == "cold":
        elsewhere.compute.migrate_server(server)
        after = cloud.after(server)
    else:
        after = cloud.migrated(server, user=elsewhere)
    assert (after.status, after.compute_host) == ("ACTIVE", source)
    assert [line for line in cloud.driver(source).guest_read(server.id) if line.startswith("boot=")] == boots
    said = [f"{each.message} {each.details}" for each in cloud.faults(server)]
    assert any("does not allow to read key" in each for each in said), said


def test_a_server_whose_key_is_gone_stays_and_its_user_hears_why(cloud: LiveCloud) -> None:
    server, volume = attached(cloud)
    source = cloud.host_of(server)
    delete_key(cloud, volume)
    cloud.member.compute.resize_server(server, "gen2.small")
    after = cloud.after(server)
    assert (after.status, after.compute_host) == ("ACTIVE", source)
    assert any(
        "could not be found in the key manager" in f"{each.message} {each.details}" for each in cloud.faults(server)
    )


def test_a_provider_that_qemu_does_not_know_is_refused_at_the_attach(cloud: LiveCloud) -> None:
    server, volume = cloud.boot(), cloud.volume(volume_type=LUKS2)
    with pytest.raises(exceptions.BadRequestException, match="provider 'luks2'"):
        cloud.attach(server, volume)
    until(
        lambda: (cloud.volume_becomes(volume, "available").status, list(cloud.attachments(server))),
        lambda seen: seen == ("available", []),
        "the attach to be undone",
    )
    assert keys_at(cloud, cloud.host_of(server)) == {}


def test_a_host_gets_only_the_keys_of_volumes_that_it_was_ordered_to_open(
    cloud: LiveCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it asks for, and with whatever grant it has."""
    server, mine = attached(cloud)
    other = cloud.volume(volume_type=LUKS)
    name = cloud.host_of(server)
    host = cloud.embedded.computes[name].host
    asked: list[Any] = []
    ask = type(host.conductor).volume_key

    def spy(client: Any, context: Any, **given: Any) -> VolumeKey:
        asked.append((context, given))
        found: VolumeKey = ask(client, context, **given)
        return found

    monkeypatch.setattr(type(host.conductor), "volume_key", spy)
    cloud.member.compute.reboot_server(server, "HARD")
    cloud.wait(server, "ACTIVE")
    context, given = asked[0]
    assert context.auth_token is None
    assert ask(host.conductor, context, **given).provider == LUKS
    for wrong in ({"volume_id": other.id}, {"host": "cell1-host2" if name != "cell1-host2" else "cell1-host1"}):
        with pytest.raises(Forbidden):
            ask(host.conductor, context, **(given | wrong))
    context.key_grant = None
    with pytest.raises(Forbidden):
        ask(host.conductor, context, **given)
    assert mine.id == given["volume_id"]

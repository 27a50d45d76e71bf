"""Block storage moves a volume that a server has: the guest continues on the new one, and nothing that it wrote is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from causeway import errors
from tests.functional.servers.moves_cloud import PATIENCE, Cloud, until
from tests.functional.servers.volumes.moving_volumes import act, ask, moving, swapped


def write(cloud: Cloud, server: Any, text: str, device: str = "vdb") -> None:
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, text, device)


def read(cloud: Cloud, server: Any, device: str = "vdb") -> list[str]:
    return cloud.driver(cloud.show(server).compute_host).guest_read(server.id, device)


def path_of(cloud: Cloud, server: Any, volume: Any) -> str:
    """The file that the guest has open."""
    guest = cloud.driver(cloud.show(server).compute_host).files.guests[server.id]
    return next(each.path for each in guest.volumes if each.volume_id == volume.id)


def migration_status(cloud: Cloud, volume: Any) -> str | None:
    return cloud.admin.block_storage.get(f"/volumes/{volume.id}").json()["volume"]["migration_status"]


def check_in_use(cloud: Cloud, server: Any, volume: Any) -> None:
    shown = cloud.admin.block_storage.get_volume(volume.id)
    assert (shown.status, len(shown.attachments)) == ("in-use", 1)
    (listed,) = cloud.member.compute.volume_attachments(server.id)
    assert (listed.volume_id, listed.attachment_id) == (volume.id, shown.attachments[0]["attachment_id"])
    assert [each["volume_id"] for each in cloud.attachments(server)] == [volume.id]


@pytest.fixture(autouse=True)
def block_storage(cloud: Cloud) -> None:
    cloud.needs_devcloud("the tests do what block storage does when it moves a volume")


@pytest.fixture
def server(cloud: Cloud) -> Any:
    return cloud.boot()


@pytest.fixture
def old(cloud: Cloud, server: Any) -> Any:
    volume = cloud.volume(name="old")
    cloud.attach(server, volume)
    return volume


def test_a_guest_continues_on_the_new_volume(cloud: Cloud, server: Any, old: Any) -> None:
    write(cloud, server, "before the swap")
    was = path_of(cloud, server, old)
    new = moving(cloud, old)
    swapped(cloud, server, old, new)
    assert path_of(cloud, server, old) != was
    assert "before the swap" in read(cloud, server)
    write(cloud, server, "after the swap")
    check_in_use(cloud, server, old)
    assert migration_status(cloud, old) == "success"
    cloud.volume_goes(new)
    action = cloud.action(server, "swap_volume")
    assert action.message is None
    assert [(event["event"], event["result"]) for event in action.events] == [("compute_swap_volume", "Success")]

    # It is the volume that it comes up with, there and elsewhere.
    cloud.admin.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    assert {"before the swap", "after the swap"} <= set(read(cloud, server))
    cloud.resized(server)
    assert {"before the swap", "after the swap"} <= set(read(cloud, server))
    cloud.confirmed(server)
    check_in_use(cloud, server, old)


def test_a_paused_server_gets_a_larger_root_volume(cloud: Cloud) -> None:
    server = cloud.boot_from_volume()
    (root,) = cloud.show(server).attached_volumes
    write(cloud, server, "on the root volume", "vda")
    cloud.member.compute.pause_server(server.id)
    cloud.wait(server, "PAUSED")
    swapped(cloud, server, root, moving(cloud, root, size=2))
    assert cloud.show(server).status == "PAUSED"
    cloud.member.compute.unpause_server(server.id)
    cloud.wait(server, "ACTIVE")
    assert "on the root volume" in read(cloud, server, "vda")
    assert cloud.admin.block_storage.get_volume(root.id).size == 2
    check_in_use(cloud, server, root)


@pytest.mark.parametrize("end", ["confirm", "revert"])
@pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
def test_a_server_whose_resize_waits_for_its_end(cloud: Cloud, server: Any, old: Any, flavor: str, end: str) -> None:
    cloud.resized(server, flavor)
    write(cloud, server, "before the swap")
    swapped(cloud, server, old, moving(cloud, old))
    write(cloud, server, "after the swap")
    if end == "confirm":
        cloud.confirmed(server)
    else:
        cloud.reverted(server)
    assert {"before the swap", "after the swap"} <= set(read(cloud, server))
    check_in_use(cloud, server, old)


def test_swaps_of_volumes_that_are_not_allowed_are_refused(cloud: Cloud, server: Any, old: Any) -> None:
    """2112187 on Launchpad: also a swap that is no migration of the volume service's; the server keeps its volumes."""
    plain, new = cloud.volume(), moving(cloud, old)
    nobody = SimpleNamespace(id="99999999-2222-3333-4444-555555555555")

    def refused(status: int, *arguments: Any, **more: Any) -> str:
        answer = ask(cloud, *arguments, **more)
        assert answer.status_code == status, answer.text
        return str(next(iter(answer.json().values()))["message"])

    other = other_attached(cloud, server)
    assert "is not migrating" in refused(409, server, other, plain)
    assert nobody.id in refused(400, server, old, nobody)
    refused(404, server, nobody, new)
    refused(404, server, nobody, new, version="2.84")
    refused(400, cloud.boot(name="other"), old, new, version="2.84")
    act(cloud, old, "os-extend", {"new_size": 2})
    assert "smaller" in refused(400, server, old, plain)
    assert "tag" in refused(400, server, old, new, tag="another")
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    assert "vm_state stopped" in refused(409, server, old, cloud.volume(size=2))
    body = {"volumeAttachment": {"volumeId": plain.id}}
    path = f"/servers/{server.id}/os-volume_attachments/{old.id}"
    assert cloud.member.compute.put(path, json=body, microversion="2.84").status_code == 403
    assert {each.volume_id for each in cloud.member.compute.volume_attachments(server)} == {old.id, other.id}
    assert {each["volume_id"] for each in cloud.attachments(server)} == {old.id, other.id}
    assert cloud.admin.block_storage.get_volume(plain.id).status == "available"
    assert cloud.moves(server) == [move for move in cloud.moves(server) if move.recipe != "swap_volume"]


def other_attached(cloud: Cloud, server: Any) -> Any:
    volume = cloud.volume(name="other")
    cloud.attach(server, volume)
    return volume


def test_a_swap_may_change_delete_on_termination(cloud: Cloud, server: Any, old: Any) -> None:
    answer = ask(cloud, server, old, moving(cloud, old), version="2.85", delete_on_termination=True)
    assert answer.status_code == 202
    cloud.wait(server, "ACTIVE")
    (listed,) = cloud.member.compute.volume_attachments(server.id)
    assert (listed.volume_id, listed.delete_on_termination) == (old.id, True)


def test_a_swap_that_fails_leaves_the_old_volume(cloud: Cloud, server: Any, old: Any, monkeypatch: Any) -> None:
    write(cloud, server, "before the swap")
    new = moving(cloud, old)
    driver = cloud.driver(cloud.show(server).compute_host)
    copy = driver.copy_volume

    def breaks(*arguments: Any) -> None:
        copy(*arguments)
        raise errors.GuestFailed("The copy broke off.")

    monkeypatch.setattr(driver, "copy_volume", breaks)
    was = path_of(cloud, server, old)
    ask(cloud, server, old, new)
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert path_of(cloud, server, old) == was
    assert "before the swap" in read(cloud, server)
    check_in_use(cloud, server, old)
    assert migration_status(cloud, old) == "error"
    cloud.volume_goes(new)
    assert "The copy broke off" in str(cloud.action(server, "swap_volume").message)


def test_a_copy_that_breaks_off_behind_the_pivot_ends_the_swap(
    cloud: Cloud, server: Any, old: Any, monkeypatch: Any
) -> None:
    new = moving(cloud, old)
    driver = cloud.driver(cloud.show(server).compute_host)
    switch = driver.switch_volume

    def too_late(uuid: str, *arguments: Any) -> bool:
        driver.power_off(uuid, 0)
        return switch(uuid, *arguments)

    monkeypatch.setattr(driver, "switch_volume", too_late)
    was = path_of(cloud, server, old)
    ask(cloud, server, old, new)
    until(lambda: cloud.action(server, "swap_volume").message, lambda found: found, "the swap to end")
    cloud.settle()
    assert path_of(cloud, server, old) == was
    assert migration_status(cloud, old) == "error"
    cloud.volume_goes(new)
    check_in_use(cloud, server, old)


def test_nothing_starts_the_guest_meanwhile(cloud: Cloud, server: Any, old: Any, monkeypatch: Any) -> None:
    """Whoever started it with what the records say could start it with the old volume, and lose what was written since."""
    new = moving(cloud, old)
    driver = cloud.driver(cloud.show(server).compute_host)
    seen: list[int] = []
    switch = driver.switch_volume

    def watched(*arguments: Any) -> bool:
        done = switch(*arguments)
        for body in ({"reboot": {"type": "HARD"}}, {"os-stop": None}, {"pause": None}, {"shelve": None}):
            answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json=body, microversion="2.96")
            seen.append(answer.status_code)
        return done

    monkeypatch.setattr(driver, "switch_volume", watched)
    swapped(cloud, server, old, new)
    assert seen == [409] * 4


def test_a_server_of_a_host_that_dies_comes_up_with_the_new_volume(
    cloud: Cloud, server: Any, old: Any, dead: Callable[..., None], monkeypatch: Any
) -> None:
    write(cloud, server, "before the swap")
    new = moving(cloud, old)
    host = cloud.show(server).compute_host
    driver = cloud.driver(host)
    switch = driver.switch_volume

    switched = threading.Event()

    def not_answered(*arguments: Any) -> bool:
        switch(*arguments)
        switched.set()
        raise errors.RpcTimeout("switch_volume", host, 1.0)

    cloud.option("stuck_retry_interval", 0.2, "moves")
    monkeypatch.setattr(driver, "switch_volume", not_answered)
    ask(cloud, server, old, new)
    assert switched.wait(PATIENCE)
    write(cloud, server, "after the switch")
    driver.power_off(server.id, 0)
    dead(host)
    until(lambda: migration_status(cloud, old), lambda status: status == "success", "the end of the swap")
    cloud.settle()
    cloud.admin.compute.evacuate_server(server.id)
    until(lambda: cloud.show(server).compute_host, lambda found: found != host, "the evacuation")
    cloud.settle()
    assert {"before the swap", "after the switch"} <= set(read(cloud, server))
    check_in_use(cloud, server, old)

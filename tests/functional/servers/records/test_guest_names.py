"""A guest that was not made here has a name of its own, and keeps it for its whole life."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.states import PowerState
from causeway.store.cell import instances
from causeway.virt.driver import Driver, GuestSpec
from tests.functional.servers.moves_cloud import Cloud, until

NOVAS = "instance-0000002a"


def adopted(cloud: Cloud, **fields: Any) -> Any:
    """A server with a recorded name, as one that another control plane has made."""
    server = cloud.boot(**fields)
    instances.update(cloud.cell("cell1"), server.id, guest_name=NOVAS)
    return cloud.show(server)


def test_the_recorded_name_is_shown_and_goes_along_to_another_cell_and_back(cloud: Cloud) -> None:
    server = adopted(cloud)
    assert server.instance_name == NOVAS
    moved = cloud.resized(server)
    assert (moved.status, moved.instance_name) == ("VERIFY_RESIZE", NOVAS)
    assert cloud.record(server, "cell2").guest_name == NOVAS
    assert cloud.show(cloud.reverted(server)).instance_name == NOVAS


def test_the_name_is_listed_for_administrators_in_the_oldest_version_too(cloud: Cloud) -> None:
    server = adopted(cloud)
    for version in ("2.1", "2.96"):
        listed = cloud.admin.compute.get("/servers/detail?all_tenants=1", microversion=version).json()["servers"]
        shown = {each["id"]: each["OS-EXT-SRV-ATTR:instance_name"] for each in listed}
        assert shown[server.id] == NOVAS


def test_the_driver_gets_the_recorded_name_at_each_start(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server, seen = adopted(cloud), []
    driver = cloud.driver(server.compute_host)
    starts = driver.power_on

    def power_on(spec: GuestSpec, **more: Any) -> PowerState:
        seen.append(spec.instance.guest_name)
        return starts(spec, **more)

    monkeypatch.setattr(driver, "power_on", power_on)
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    assert seen == [NOVAS]


def named_anew(cloud: Cloud, monkeypatch: pytest.MonkeyPatch, hosts: list[str]) -> str:
    """On these hosts the recorded name is another guest's. Returns the name that they give."""
    for host in hosts:
        monkeypatch.setattr(cloud.driver(host), "guest_name", "another-name-for-{}".format)
    return "another-name-for-{}"


def test_the_record_says_which_name_a_guest_got_where_its_own_was_not_free(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = adopted(cloud)
    name = named_anew(cloud, monkeypatch, ["cell2-host1", "cell2-host2"]).format(server.id)
    assert cloud.resized(server).instance_name == name
    assert cloud.show(cloud.confirmed(server)).instance_name == name


@pytest.mark.parametrize("way", ["start", "rebuild", "unshelve"])
def test_the_record_says_which_name_a_guest_got_that_was_made_anew(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    server = adopted(cloud)
    compute = cloud.member.compute
    if way == "start":
        compute.stop_server(server.id)
        cloud.wait(server, "SHUTOFF")
    if way == "unshelve":
        compute.shelve_server(server.id)
        cloud.wait(server, "SHELVED_OFFLOADED")
    assert cloud.show(server).instance_name == NOVAS
    name = named_anew(cloud, monkeypatch, [f"cell{cell}-host{host}" for cell in (1, 2) for host in (1, 2)])
    orders = {"rebuild": {"rebuild": {"imageRef": cloud.image_id}}, "start": {"os-start": None}}
    compute.post(f"/servers/{server.id}/action", json=orders.get(way, {"unshelve": None}))
    until(
        lambda: cloud.show(server).instance_name, lambda found: found == name.format(server.id), "the name to be shown"
    )
    cloud.wait(server, "ACTIVE")


def test_the_record_says_which_name_a_guest_got_that_came_back_to_a_host_where_its_own_is_not_free_now(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = adopted(cloud)
    cloud.resized(server)
    name = named_anew(cloud, monkeypatch, [server.compute_host]).format(server.id)
    assert cloud.show(cloud.reverted(server)).instance_name == name


def test_the_record_says_which_name_a_guest_got_that_was_restored_after_a_failed_move(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = adopted(cloud)
    name = named_anew(cloud, monkeypatch, [server.compute_host]).format(server.id)
    cloud.break_driver(["cell2-host1", "cell2-host2"], "spawn")
    cloud.member.compute.resize_server(server.id, "gen2.small")
    assert cloud.failed(server).instance_name == name


def test_nothing_is_recorded_of_a_guest_with_the_computed_name(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    def unasked(_driver: Driver, uuid: str) -> str:
        raise AssertionError(f"nobody has to know the name of guest {uuid}")

    monkeypatch.setattr(Driver, "guest_name", unasked)
    server = cloud.boot()
    assert cloud.resized(server).instance_name == f"instance-{server.id}"
    assert cloud.record(server, "cell2").guest_name is None

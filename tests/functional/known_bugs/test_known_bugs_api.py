"""Known bugs, section 5: what the API takes and refuses. See docs/known-bugs.md."""

from __future__ import annotations

import pytest

from causeway.rpc.transport import Verdict
from causeway.store.api import flavors

from .known_bugs_cloud import KnownBugsCloud


def test_a_resize_to_less_than_the_image_needs_is_refused(cloud: KnownBugsCloud) -> None:
    """1867077: disk and memory; a 400 and nothing else."""
    image = cloud.image_with("demanding", min_ram=100, min_disk=1)
    server = cloud.boot(image_id=image.id, flavor="any.medium")
    cloud.member.compute.delete_server(cloud.boot().id)
    for name, fields in {"forgetful": {"ram": 64}, "diskless": {"disk": 0}}.items():
        with cloud.passing_flavor(name, **fields) as flavor:
            answer = cloud.act(server, {"resize": {"flavorRef": flavor}})
            assert answer.status_code == 400 and "badRequest" in answer.json(), answer.text
    assert cloud.show(server).status == "ACTIVE" and cloud.actions(server) == ["create"]
    cloud.member.image.delete_image(image)


def test_flavors_with_accelerators_are_refused(cloud: KnownBugsCloud) -> None:
    """1893751: as the new flavor of a server, and as the old one."""
    server = cloud.boot()
    with cloud.passing_flavor("accelerated", extra_specs={"accel:device_profile": "fpga"}) as flavor:
        assert cloud.act(server, {"resize": {"flavorRef": flavor}}).status_code == 400
        record = cloud.record(server, "cell1")
        accelerated = flavors.get(cloud.parts.api_database, flavor)
        from causeway.store.cell import instances

        instances.update(cloud.cell("cell1"), server.id, flavor=accelerated)
        assert cloud.act(server, {"resize": {"flavorRef": "gen2.small"}}).status_code == 400
        instances.update(cloud.cell("cell1"), server.id, flavor=record.flavor)
    assert cloud.show(server).task_state is None


def test_hosts_that_are_down_are_refused_before_anything_changes(cloud: KnownBugsCloud) -> None:
    """1856925, 1938326, 1909120: resize, migrate, attach and detach; one that is only disabled serves."""
    server, volume, other = cloud.boot(), cloud.volume(), cloud.volume(name="other")
    cloud.attach(server, volume)
    home = cloud.show(server).compute_host
    before = cloud.reality(server)
    attachment = f"/servers/{server.id}/os-volume_attachments/{volume.id}"
    with cloud.service_with(home, status="disabled", forced_down=True):
        for who, body in ((cloud.member, {"resize": {"flavorRef": "gen2.small"}}), (cloud.admin, {"migrate": None})):
            assert cloud.act(server, body, who=who).status_code == 409
        assert cloud.member.compute.delete(attachment).status_code == 409
        given = {"volumeAttachment": {"volumeId": other.id}}
        path = f"/servers/{server.id}/os-volume_attachments"
        assert cloud.member.compute.post(path, json=given).status_code == 409
    assert cloud.reality(server) == before
    assert cloud.actions(server) == ["create", "attach_volume"]
    assert cloud.member.block_storage.get_volume(other.id).status == "available"

    with cloud.service_with(home, status="disabled"):
        cloud.resized(server)
    assert cloud.confirmed(server).status == "ACTIVE"
    cloud.detach(server, volume)


def test_no_request_waits_for_a_move(cloud: KnownBugsCloud) -> None:
    """1763070, 1938021: the API answers when the journal knows; a conductor that does not hear of it finds it there."""
    server = cloud.boot()
    cloud.lose("run_move", Verdict.LOSE_REQUEST)
    assert cloud.act(server, {"resize": {"flavorRef": "gen2.small"}}).status_code == 202
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    with cloud.held("confirm_snapshot_based_resize_at_source") as reached:
        cloud.member.compute.delete_server(server.id)
        # It was answered, and the source still works on the confirm.
        assert reached.wait(20)
        assert cloud.show(server).task_state == "deleting"
    cloud.gone(server)
    assert cloud.cleanups(server, "cell1") == []


@pytest.mark.parametrize("machine_type", ["q35", "pc-i440fx-9.2", "../../etc", "no such machine"])
def test_an_invalid_machine_type_is_refused_at_once(cloud: KnownBugsCloud, machine_type: str) -> None:
    """1933097: at create and at resize, not by the hypervisor of some host."""
    image = cloud.image_with("machine", hw_machine_type=machine_type)
    body = {"name": "x", "flavorRef": "gen1.small", "imageRef": image.id, "networks": "none"}
    answer = cloud.member.compute.post("/servers", json={"server": body}, microversion="2.96")
    good = machine_type in ("q35", "pc-i440fx-9.2")
    assert answer.status_code == (202 if good else 400), answer.text
    if good:
        cloud.wait(cloud.member.compute.get_server(answer.json()["server"]["id"]), "ACTIVE")
    else:
        assert "machine type" in answer.text
    cloud.clean()
    cloud.member.image.delete_image(image)


def test_hints_of_our_own_can_not_be_given_by_users(cloud: KnownBugsCloud) -> None:
    """2151252."""
    server = cloud.boot(scheduler_hints={"_nova_check_type": ["rebuild"], "colour": "blue"})
    assert cloud.spec(server)["scheduler_hints"] == {"colour": ["blue"]}

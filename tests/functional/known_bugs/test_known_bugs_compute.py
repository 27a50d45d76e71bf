"""Known bugs, section 6: states, volumes, ports and disks on hosts. See docs/known-bugs.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import causeway.virt.libvirt
from causeway.errors import GuestFailed
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.cell import instances
from tests.functional.servers.moves_cloud import until

from .known_bugs_cloud import ALL_HOSTS, KnownBugsCloud


class Unplugs:
    """Which ports every host was ordered to unplug, with what was said of them."""

    def __init__(self, cloud: KnownBugsCloud, patch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[str, list[Any]]] = []
        for host in ALL_HOSTS:
            works = cloud.driver(host).destroy

            def destroy(uuid: str, vifs: Any, *rest: Any, host: str = host, works: Any = works, **named: Any) -> Any:
                self.seen.append((host, list(vifs)))
                return works(uuid, vifs, *rest, **named)

            patch.setattr(cloud.driver(host), "destroy", destroy)


def test_ports_are_unplugged_when_the_source_hands_over_and_as_they_were_there(
    cloud: KnownBugsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1895220, 1809095: not at confirm, with what the target's binding says."""
    server = cloud.boot()
    home = cloud.show(server).compute_host
    at_home = cloud.record(server, "cell1").network_info
    unplugs = Unplugs(cloud, monkeypatch)
    cloud.resized(server)
    assert [host for host, _vifs in unplugs.seen] == [home]
    assert unplugs.seen[0][1] == at_home
    cloud.confirmed(server)
    assert len(unplugs.seen) == 1


def test_a_port_that_is_deleted_before_its_server_is_unplugged_with_it(
    cloud: KnownBugsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2151837: what the host knows of it is kept until then."""
    port = cloud.member.network.create_port(network_id=cloud.network_id)
    server = cloud.boot(networks=[{"port": port.id}])
    cloud.admin.network.delete_port(port.id)
    unplugs = Unplugs(cloud, monkeypatch)
    cloud.member.compute.delete_server(server.id)
    cloud.gone(server)
    assert [vif.id for vif in unplugs.seen[0][1]] == [port.id]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("what", ["port", "volume"])
def test_a_server_that_goes_while_something_is_attached_leaves_nothing(
    cloud: KnownBugsCloud, monkeypatch: pytest.MonkeyPatch, what: str, when: str
) -> None:
    """1944787: a server that is gone is not found; it is no error of the database, and nothing stays behind."""
    server, volume = cloud.boot(networks="none"), cloud.volume()
    driver = cloud.driver(cloud.show(server).compute_host)
    method = {"port": "attach_interface", "volume": "attach_volume"}[what]
    works = getattr(driver, method)

    def attach(*given: Any) -> None:
        if when == "after":
            works(*given)
        # As a host that is slow: the server's lock is not what this is about.
        with cloud.cell("cell1").write() as connection:
            connection.execute(
                sa.update(instances.TABLE).where(instances.TABLE.c.uuid == server.id).values(deleted=True)
            )
        if when == "before":
            raise GuestFailed("There is no such guest.")

    monkeypatch.setattr(driver, method, attach)
    body, path = {
        "port": ({"interfaceAttachment": {"net_id": cloud.network_id}}, "os-interface"),
        "volume": ({"volumeAttachment": {"volumeId": volume.id}}, "os-volume_attachments"),
    }[what]
    answer = cloud.member.compute.post(f"/servers/{server.id}/{path}", json=body)
    with cloud.cell("cell1").write() as connection:
        connection.execute(sa.update(instances.TABLE).where(instances.TABLE.c.uuid == server.id).values(deleted=False))
    if (what, when) != ("volume", "after"):
        assert answer.status_code == 404, answer.text
        assert cloud.ports(server) == {} and cloud.attachments(server) == []
    else:
        # Who deletes the server finds the volume among its devices.
        assert answer.status_code in (200, 202)


@pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])
def test_orphaned_disks_of_an_earlier_move_are_in_nobodys_way(cloud: KnownBugsCloud, flavor: str) -> None:
    """1960230: stale stashed disks at the source; revert brings the server's own disk back, confirm leaves nothing."""
    server = cloud.boot()
    home = cloud.show(server).compute_host
    cloud.driver(home).guest_write(server.id, "precious")
    for end in (cloud.reverted, cloud.confirmed):
        stale = cloud.parts.state.host(home) / "instances" / f"{server.id}_resize"
        stale.mkdir()
        (stale / "disk").write_text("of another time")
        cloud.resized(server, flavor)
        here = end(server).compute_host
        assert "precious" in cloud.driver(here).guest_read(server.id)
        assert cloud.hosts_of(server) == {here: "guest"}


def test_a_host_with_orphaned_disks_of_the_server_is_passed_over_and_keeps_them(cloud: KnownBugsCloud) -> None:
    """1414895, 1550919: nobody knows whose they are; another host takes the server, and a failure deletes nothing here."""
    server = cloud.boot()
    left = cloud.parts.state.host("cell2-host1") / "instances" / server.id
    left.mkdir()
    (left / "disk").write_text("whose?")
    assert cloud.resized(server).compute_host == "cell2-host2"
    cloud.reverted(server)
    with cloud.service_with("cell2-host2", status="disabled"):
        cloud.member.compute.resize_server(server.id, "gen2.small")
        cloud.failed(server)
    assert (left / "disk").read_text() == "whose?"
    (left / "disk").unlink()
    left.rmdir()


def test_a_server_whose_image_is_gone_moves_with_its_whole_disk(cloud: KnownBugsCloud) -> None:
    """1558880: there and back, with the size of the new flavor."""
    data = cloud.member.image.download_image(cloud.image_id).content
    image = cloud.member.image.create_image(
        name="short-lived", data=data, disk_format="raw", container_format="bare", wait=True, validate_checksum=False
    )
    server = cloud.boot(image_id=image.id)
    cloud.driver(cloud.show(server).compute_host).guest_write(server.id, "precious")
    cloud.member.image.delete_image(image)
    for host in ALL_HOSTS:
        for path in (cloud.parts.state.host(host) / "_base").glob(f"*{image.id}*"):
            path.unlink()
    moved = cloud.resized(server)
    assert "precious" in cloud.driver(moved.compute_host).guest_read(server.id)
    assert cloud.driver(moved.compute_host).inspect(server.id).vcpus == 2
    cloud.reverted(server)
    cloud.resized(server)
    assert "precious" in cloud.driver(cloud.confirmed(server).compute_host).guest_read(server.id)


@pytest.mark.embedded("looks at calls")
def test_a_migration_never_says_that_its_target_is_its_source(cloud: KnownBugsCloud) -> None:
    """1818730: at no call of a move that fails at every host, nor afterwards."""
    server = cloud.boot()
    home = cloud.show(server).compute_host
    seen: list[str | None] = []
    cloud.without_patience()

    def look(message: Outgoing) -> Verdict:
        if message.topic == "compute":
            seen.append(cloud.migration(server).dest_compute)
        if message.method == "prep_snapshot_based_resize_at_dest":
            return Verdict.LOSE_REQUEST
        return Verdict.DELIVER

    cloud.parts.around.transports.on_send = look
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    migration = cloud.migration(server)
    assert set(seen) == {"cell2-host1", "cell2-host2"}
    assert (migration.source_compute, migration.dest_compute in seen) == (home, True)


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_whoever_sees_the_end_of_a_move_finds_nothing_left_of_it(cloud: KnownBugsCloud, end: str) -> None:
    """1904051, 1843433: the last thing that is seen is the end; nothing needs to be waited for after it."""
    server = cloud.boot()
    cloud.resized(server)
    migration, path = cloud.migration(server).uuid, f"/servers/{server.id}"
    cloud.act(server, {f"{end}Resize": None})
    compute = cloud.admin.compute
    until(lambda: compute.get(path).json()["server"]["status"], lambda status: status == "ACTIVE", "the end")
    assert cloud.allocations(migration) == {}
    assert cloud.cleanups(server, "cell1" if end == "confirm" else "cell2") == []
    assert len(cloud.allocations(server.id)) == len(cloud.hosts_of(server)) == 1
    assert cloud.migration(server).status == f"{end.removesuffix('m')}{'med' if end == 'confirm' else 'ed'}"


def test_disks_are_never_worked_on_without_naming_their_format() -> None:
    """2137507: a guest could write a header of another format into its raw disk, and have other files of the host read."""
    commands = []
    for path in Path(causeway.virt.libvirt.__file__).parent.rglob("*.py"):
        if path.parent.name == "rbd":
            # Ceph's own programs, whose images are raw, and the protocol of those who call them.
            continue
        commands += re.findall(r"\"(info|resize|convert|rebase|create|commit|check|bitmap)\",(.*)", path.read_text())
    assert len(commands) >= 10
    assert [command for command in commands if '"-f"' not in command[1]] == []

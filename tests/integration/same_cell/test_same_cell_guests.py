"""Real guests that move inside their cell: to the other host, to the host they are on, and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway.cli.demo.guest import GuestReport, last_report
from causeway.virt.lab.hosts import missing
from tests.functional.servers import patience
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.broken_hosts import lose_guest
from tests.functional.servers.moves_cloud import until
from tests.integration.embedded_guests import cloud_with_guests

REASON = missing()
HOSTS = ("cell1-host1", "cell1-host2")

pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def module_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedCloud]:
    with cloud_with_guests(
        tmp_path_factory.mktemp("cloud"),
        cells=1,
        hosts_per_cell=2,
        overrides={"DEFAULT": {"allow_resize_to_same_host": True}},
    ) as embedded:
        yield AuditedCloud(embedded)


@pytest.fixture
def cloud(module_cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditedCloud]:
    monkeypatch.setattr(patience, "PATIENCE", 120.0)
    for host in HOSTS:
        # Flavors that are tied to one host.
        if module_cloud.admin.compute.find_aggregate(host) is None:
            made = module_cloud.admin.compute.create_aggregate(name=host)
            module_cloud.admin.compute.set_aggregate_metadata(made, {"only": host})
            module_cloud.admin.compute.add_host_to_aggregate(made, host)
            for size, vcpus in (("small", 1), ("medium", 2)):
                flavor = module_cloud.flavor(
                    f"{host}.{size}", vcpus=vcpus, ram=96 + 32 * vcpus, disk=vcpus, ephemeral=1
                )
                specs = {"aggregate_instance_extra_specs:only": host}
                module_cloud.admin.compute.create_flavor_extra_specs(flavor, specs)
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()


def facts(cloud: AuditedCloud, server: Any, host: str) -> Any:
    return cloud.parts.computes[host].host.driver.inspect(server.id)


def said(cloud: AuditedCloud, server: Any, host: str, boot: int) -> GuestReport:
    """What the guest said at its boot of this number, once it has said it all."""
    driver = cloud.parts.computes[host].host.driver

    def look() -> GuestReport:
        return last_report(driver.console_output(server.id).decode(errors="replace").replace("\r", ""))

    report: GuestReport = until(look, lambda report: report.ready and report.boot == boot, "the guest to boot")
    return report


# Real guests take their time: of four pairs the two that share nothing. Simulated hosts do all of them.
@pytest.mark.parametrize(
    ("backing", "target"), [("image", HOSTS[1]), ("volume", HOSTS[0])], ids=["image-same-cell", "volume-same-host"]
)
def test_a_guest_moves_and_then_stays_or_goes_back(cloud: AuditedCloud, backing: str, target: str) -> None:
    """A server on an image is reverted, one on a volume confirmed."""
    source = HOSTS[0]
    if backing == "volume":
        server = cloud.boot_from_volume(flavor_id=f"{source}.small")
    else:
        server = cloud.boot(flavor=f"{source}.small")
    first = said(cloud, server, source, 1)
    assert first.vcpus == 1

    cloud.resized(server, f"{target}.medium")
    there = said(cloud, server, target, 2)
    assert (there.vcpus, there.memory_mb, there.ip, there.mac) == (2, 160, first.ip, first.mac)
    assert there.first("vda") == first.first("vda")
    assert facts(cloud, server, source).has_stashed_disks
    assert facts(cloud, server, target).power_state is not None
    # Both local disks were copied while the guest ran.
    (move,) = cloud.moves(server)
    offered = {disk["name"]: disk["disk_format"] for disk in move.data["offer"]["disks"]}
    assert offered == dict.fromkeys(["disk.eph0"] if backing == "volume" else ["disk", "disk.eph0"], "changes")
    assert cloud.audit().is_clean

    if backing == "volume":
        cloud.confirmed(server)
        home = target
    else:
        cloud.reverted(server)
        home = source
        # What it did elsewhere was on a disk that is gone.
        back = said(cloud, server, source, 2)
        assert (back.vcpus, back.ip, back.first("vda")) == (1, first.ip, first.first("vda"))
    for host in HOSTS:
        found = facts(cloud, server, host)
        seen = (found.power_state is not None, found.has_disks, found.has_stashed_disks)
        assert seen == (host == home, host == home, False)
    assert cloud.audit().is_clean


def test_a_stopped_guest_moves_and_stays_off(cloud: AuditedCloud) -> None:
    server = cloud.boot(flavor=f"{HOSTS[0]}.small")
    first = said(cloud, server, HOSTS[0], 1)
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    cloud.resized(server, f"{HOSTS[1]}.medium")
    assert cloud.confirmed(server).status == "SHUTOFF"
    cloud.member.compute.start_server(server.id)
    cloud.wait(server, "ACTIVE")
    again = said(cloud, server, HOSTS[1], 2)
    assert (again.vcpus, again.first("vda")) == (2, first.first("vda"))


def test_a_target_that_lost_guest_and_disks_is_not_confirmed(cloud: AuditedCloud) -> None:
    """The other copy is the last one: the server waits for its user, who reverts."""
    source, target = HOSTS
    server = cloud.boot(flavor=f"{source}.small")
    first = said(cloud, server, source, 1)
    cloud.resized(server, f"{target}.medium")
    said(cloud, server, target, 2)
    lose_guest(cloud.parts.computes[target].host.driver, server.id)
    cloud.member.compute.confirm_server_resize(server.id)
    until(lambda: cloud.faults(server), bool, "a fault")
    cloud.settle()
    assert cloud.show(server).status == "VERIFY_RESIZE"
    assert "Nothing was destroyed" in cloud.faults(server)[-1].message
    cloud.reverted(server)
    assert said(cloud, server, source, 2).first("vda") == first.first("vda")
    assert not facts(cloud, server, target).has_disks

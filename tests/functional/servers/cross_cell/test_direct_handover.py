"""Where the hosts of two cells reach one another, what is left when the guest is off goes directly, too: no image is made."""

from __future__ import annotations

from typing import Any

import pytest
import requests

from causeway import errors
from causeway.compute.handover import disk_fetch, disk_transfer, handed_over
from causeway.context import admin_context
from causeway.model.outcomes import OperationToken
from causeway.store.api import journal
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.dying_threads import SOON_NOTICED
from tests.functional.servers.moves_cloud import PATIENCE, Cloud

CLOUD = SOON_NOTICED
KIND = AuditedCloud
pytestmark = [
    pytest.mark.embedded("looks into hosts, and breaks them"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


@pytest.fixture
def server(cloud: Cloud) -> Any:
    server = cloud.boot("direct")
    driver(cloud, server).guest_write(server.id, "precious")
    return server


def driver(cloud: Cloud, server: Any) -> Any:
    return cloud.driver(cloud.show(server).compute_host)


def offers(cloud: Cloud) -> set[str]:
    return set().union(*(compute.host.offers.servers() for compute in cloud.parts.computes.values()))


def without_images(cloud: Cloud) -> None:
    for method in ("POST", "PUT"):
        cloud.fail("status", "/images", service="image", method=method, status=403)


def has_arrived(cloud: AuditedCloud, server: Any) -> Any:
    """The memory of the move."""
    cloud.settle()
    assert "precious" in driver(cloud, server).guest_read(server.id)
    assert cloud.temporary_images() == []
    (move,) = cloud.moves(server)
    return move.data


def went_as_image(cloud: AuditedCloud, server: Any) -> bool:
    memory = has_arrived(cloud, server)
    assert (memory["snapshot"] is None) != (memory["offer"] is None)
    return memory["snapshot"] is not None


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_the_image_service_has_no_part_in_it(cloud: AuditedCloud, server: Any, end: str) -> None:
    without_images(cloud)
    cloud.resized(server)
    memory = has_arrived(cloud, server)
    assert memory["offer"]["token"] == "", "nobody needs it any more"
    assert offers(cloud) == set()
    (move,) = cloud.moves(server)
    sent = {step.step: (step.bytes_done, step.bytes_total) for step in journal.steps(cloud.parts.api_database, move.id)}
    size = memory["offer"]["disks"][0]["size"]
    assert sent["HandOver"] == sent["FinishAtTarget"] == (size, size)
    if end == "confirm":
        cloud.confirmed(server)
    else:
        cloud.reverted(server)
    assert "precious" in driver(cloud, server).guest_read(server.id)
    assert cloud.audit().is_clean


def test_ephemeral_disks_go_along(cloud: AuditedCloud) -> None:
    flavors = [cloud.flavor(f"gen{gen}.direct", gen=gen, ephemeral=1, swap=64) for gen in (1, 2)]
    server = cloud.boot(flavor=flavors[0])
    driver(cloud, server).guest_write(server.id, "precious")
    driver(cloud, server).guest_write(server.id, "precious too", "vdb")
    without_images(cloud)
    cloud.resized(server, flavors[1])
    assert {disk["name"] for disk in has_arrived(cloud, server)["offer"]["disks"]} == {"disk", "disk.eph0"}
    assert "precious too" in driver(cloud, server).guest_read(server.id, "vdb")


def test_all_of_a_disk_goes_so_if_it_is_not_known_what_changed(cloud: AuditedCloud, server: Any) -> None:
    without_images(cloud)
    host = driver(cloud, server)
    with cloud.held("prep_snapshot_based_resize_at_source") as arrived:
        cloud.member.compute.resize_server(server.id, "gen2.small")
        assert arrived.wait(PATIENCE)
        host.end_rounds(server.id)
        host.guest_write(server.id, "late")
    cloud.wait(server, "VERIFY_RESIZE")
    assert has_arrived(cloud, server)["offer"]["disks"][0]["disk_format"] == "qcow2"
    assert "late" in driver(cloud, server).guest_read(server.id)


def test_what_cannot_be_fetched_after_all_goes_as_an_image(cloud: AuditedCloud, server: Any) -> None:
    cloud.cut_offers()
    cloud.resized(server)
    assert went_as_image(cloud, server)
    cloud.reverted(server)
    assert offers(cloud) == set()
    assert cloud.audit().is_clean


def test_a_source_that_restarts_meanwhile_still_has_it(cloud: AuditedCloud, server: Any) -> None:
    """Also when it comes back without the port that it had."""
    compute = cloud.parts.computes[cloud.show(server).compute_host].host
    with cloud.held("finish_snapshot_based_resize_at_dest") as arrived:
        cloud.member.compute.resize_server(server.id, "gen2.small")
        assert arrived.wait(PATIENCE)
        assert offers(cloud) == {server.id}
        compute.disk_server.stop()
    try:
        cloud.wait(server, "VERIFY_RESIZE")
        assert went_as_image(cloud, server)
    finally:
        compute.disk_server.start()


def test_an_offer_ends_if_the_move_is_undone(cloud: AuditedCloud, server: Any) -> None:
    cloud.without_patience()
    before = cloud.reality(server)
    cloud.break_driver(["cell2-host1", "cell2-host2"], "spawn")
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    assert cloud.reality(server) == before
    assert offers(cloud) == set()
    assert cloud.moves(server)[-1].data["offer"] is None
    assert cloud.audit().is_clean


def test_an_order_to_send_it_that_comes_late_is_refused(cloud: AuditedCloud, server: Any) -> None:
    cloud.cut_offers()
    cloud.without_patience()
    before = cloud.reality(server)
    late = cloud.delay("send_offered")
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.failed(server)
    with pytest.raises(errors.CausewayError):
        late.arrives()
    assert cloud.reality(server) == before
    assert cloud.temporary_images() == []


@pytest.mark.parametrize(
    "point",
    [
        "compute.prep_snapshot_based_resize_at_source.after",
        "disk.fetch.before",
        "disk.fetch.after",
        "disk.release.before",
        "compute.finish_snapshot_based_resize_at_dest.after",
    ],
)
def test_the_rest_goes_directly_though_somebody_dies(
    cloud: AuditedCloud, server: Any, dies_at: Any, point: str
) -> None:
    without_images(cloud)
    dies_at(point)
    cloud.resized(server)
    assert not went_as_image(cloud, server)
    cloud.confirmed(server)
    assert cloud.audit().is_clean


@pytest.mark.parametrize(
    "point", ["compute.send_offered.before", "compute.send_offered.after", "disk.upload.in", "disk.download.in"]
)
def test_the_rest_goes_as_an_image_though_somebody_dies(
    cloud: AuditedCloud, server: Any, dies_at: Any, point: str
) -> None:
    cloud.cut_offers()
    dies_at(point)
    cloud.resized(server)
    assert went_as_image(cloud, server)
    cloud.reverted(server)
    assert cloud.audit().is_clean


def test_images_that_were_made_for_nothing_go(
    cloud: AuditedCloud, server: Any, dies_at: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The conductor dies when it has made them; then the hosts reach one another again."""
    left, works = [None], disk_fetch._receive

    def cut_once(*given: Any) -> None:
        if left:
            left.pop()
            raise requests.ConnectionError("cut")
        works(*given)

    monkeypatch.setattr(disk_fetch, "_receive", cut_once)
    monkeypatch.setattr(handed_over, "PATIENCE", 0.0)
    dies_at("call.image POST /v2/images.reply")
    cloud.resized(server)
    assert not went_as_image(cloud, server)
    assert left == []
    cloud.confirmed(server)
    assert cloud.audit().is_clean


def test_nobody_sends_what_is_not_offered(cloud: AuditedCloud, server: Any) -> None:
    host = cloud.parts.computes[cloud.show(server).compute_host].host
    token = OperationToken("0" * 36, "0" * 36, 1, "FinishAtTarget")
    with pytest.raises(errors.DiskTransferFailed, match="not offered any more"):
        disk_transfer.send_offered(host, admin_context(), token, {})

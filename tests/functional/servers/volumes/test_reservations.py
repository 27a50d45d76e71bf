"""No attachment of a volume outlives the one that the server's record names, but for what a revert will need.

Conductors die, or are refused, while they put one attachment into another's place; two of them share the work. Who dies is a
thread that ends where it stands: nobody hears of it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.store.api import journal
from tests.functional.servers.dead_hosts import come_back
from tests.functional.servers.moves_cloud import Cloud, until
from tests.functional.servers.slow_conductors import Hold
from tests.functional.servers.volumes import moving_volumes

CLOUD: dict[str, Any] = {
    "overrides": {
        # A busy machine must not make hosts look dead.
        "DEFAULT": {"report_interval": 1, "rpc_response_timeout": 3},
        "conductor": {"recovery_interval": 4},
        "moves": {"lease": 1.5, "stuck_retry_interval": 0.5, "first_pause": 0.1},
        "fault_injection": {"enabled": True},
    }
}
pytestmark = [
    pytest.mark.embedded("threads of this process die"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
    pytest.mark.usefixtures("dead"),
    pytest.mark.usefixtures("other"),
]

RESERVE = "call.volume POST /v3/attachments"
RELEASE = "call.volume DELETE /v3/attachments/{attachment_id}"
# The one attachment is there, and the other one, or the record does not say so yet.
BETWEEN = pytest.mark.parametrize("point", [f"{RESERVE}.reply", f"{RELEASE}.request", f"{RELEASE}.reply"])
WAYS = pytest.mark.parametrize("flavor", ["gen2.small", "any.medium"], ids=["cross-cell", "same-cell"])


def act(cloud: Cloud, server: Any, action: str, value: Any = None) -> None:
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json={action: value}, microversion="2.94")
    assert answer.status_code < 300, answer.text


def attachments(cloud: Cloud, server: Any) -> list[str]:
    return sorted(found["status"] for found in cloud.attachments(server))


def settled(cloud: Cloud, server: Any) -> Any:
    until(
        lambda: journal.active_of_server(cloud.parts.api_database, server.id),
        lambda found: found is None,
        "nobody to work on the server",
    )
    return cloud.show(server)


def moved_before(cloud: Cloud) -> Any:
    """A server on a volume whose attachment an earlier move has made, and remembers."""
    server = cloud.boot_from_volume()
    cloud.resized(server, "any.medium")
    return cloud.confirmed(server)


@BETWEEN
def test_a_shelve_that_is_taken_over_leaves_one_reservation(cloud: Cloud, dies_at: Any, point: str) -> None:
    server = moved_before(cloud)
    (root,) = server.attached_volumes
    dies_at(point)
    act(cloud, server, "shelve")
    assert settled(cloud, server).status == "SHELVED_OFFLOADED"
    assert attachments(cloud, server) == ["reserved"]
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
    cloud.member.compute.delete_server(server.id)
    cloud.volume_goes(root)


def test_a_swap_that_is_taken_over_reserves_the_new_volume_once(cloud: Cloud, dies_at: Any) -> None:
    server, old = cloud.boot(), cloud.volume(name="old")
    cloud.attach(server, old)
    new = moving_volumes.moving(cloud, old)
    dies_at(f"{RESERVE}.reply")
    assert moving_volumes.ask(cloud, server, old, new).status_code == 202
    settled(cloud, server)
    assert attachments(cloud, server) == ["attached"]
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


@BETWEEN
def test_an_evacuation_that_is_taken_over_leaves_nothing_at_the_dead_host(
    cloud: Cloud, dead: Callable[..., None], dies_at: Any, point: str
) -> None:
    server = moved_before(cloud)
    host = server.compute_host
    dead(host)
    dies_at(point)
    act(cloud, server, "evacuate", {})
    found = settled(cloud, server)
    assert found.status == "ACTIVE" and found.compute_host != host
    assert attachments(cloud, server) == ["attached"]
    come_back(cloud, host)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_an_evacuation_that_is_refused_half_way_leaves_one_attachment(
    cloud: Cloud, dead: Callable[..., None], method: str
) -> None:
    """``DELETE``: the new attachment is written down, and the old one stays."""
    server = moved_before(cloud)
    host = server.compute_host
    dead(host)
    cloud.without_patience()
    cloud.fail("status", "/attachments", service="volume", method=method, status=400, times=1)
    act(cloud, server, "evacuate", {})
    assert settled(cloud, server).compute_host == host
    assert attachments(cloud, server) == ["attached"]
    act(cloud, server, "evacuate", {})
    assert settled(cloud, server).status == "ACTIVE"
    assert attachments(cloud, server) == ["attached"]
    come_back(cloud, host)


def test_what_a_revert_will_need_stays(cloud: Cloud, dies_at: Any) -> None:
    """An administrator has said that a resized server is ACTIVE; it is shelved, and its resize is reverted all the same."""
    server = cloud.boot_from_volume()
    cloud.resized(server, "any.medium")
    cloud.settle()
    (kept,) = [each["id"] for each in cloud.attachments(server) if each["status"] == "reserved"]
    act(cloud, server, "os-resetState", {"state": "active"})
    dies_at(f"{RELEASE}.request")
    act(cloud, server, "shelve")
    settled(cloud, server)
    found = {each["id"]: each["status"] for each in cloud.attachments(server)}
    assert found.pop(kept) == "reserved"
    assert list(found.values()) == ["reserved"]


@WAYS
@pytest.mark.parametrize("end", ["confirm", "revert"])
@pytest.mark.parametrize("point", [None, f"{RELEASE}.request", f"{RELEASE}.reply"])
def test_a_volume_that_a_resized_server_has_no_more_is_free(
    cloud: Cloud, dies_at: Any, flavor: str, end: str, point: str | None
) -> None:
    """Its user may use it at once, elsewhere and here: neither waits for the end of the resize."""
    server, volume, stays = cloud.boot(), cloud.volume(), cloud.volume()
    cloud.attach(server, volume)
    cloud.attach(server, stays)
    cloud.resized(server, flavor)
    cloud.settle()
    assert attachments(cloud, server) == ["attached", "attached", "reserved", "reserved"]
    if point is not None:
        dies_at(point)
    cloud.detach(server, volume)
    settled(cloud, server)
    assert cloud.member.block_storage.get_volume(volume.id).status == "available"
    assert attachments(cloud, server) == ["attached", "reserved"]
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []

    cloud.attach(server, volume)
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []
    ended = cloud.confirmed(server) if end == "confirm" else cloud.reverted(server)
    assert attachments(cloud, server) == ["attached", "attached"]
    assert {each.id for each in ended.attached_volumes} == {volume.id, stays.id}
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def test_of_two_attaches_of_a_volume_the_later_one_leaves_the_first_alone(cloud: Cloud, at_point: Any) -> None:
    """1937375 on Launchpad: both learned from the API's look that the server does not have it."""
    server, volume = cloud.boot(), cloud.volume()

    def attach() -> int:
        answer = cloud.member.compute.request(
            f"/servers/{server.id}/os-volume_attachments",
            "POST",
            json={"volumeAttachment": {"volumeId": volume.id}},
            raise_exc=False,
            connect_retries=0,
        )
        return int(answer.status_code)

    later = Hold(at_point, "call.volume GET /v3/volumes/{volume_id}.reply")
    with ThreadPoolExecutor(1) as users:
        answered = users.submit(attach)
        assert later.reached.wait(10)
        assert attach() == 200
        (first,) = cloud.attachments(server)
        later.opened.set()
        assert answered.result(20) == 400
    settled(cloud, server)
    assert cloud.attachments(server) == [first]
    assert [each.volume_id for each in cloud.member.compute.volume_attachments(server.id)] == [volume.id]
    assert cloud.member.block_storage.get_volume(volume.id).status == "in-use"

"""Reports of volumes that are attached and detached, from people who run OpenStack.

Numbers are bugs on Launchpad. See docs/known-bugs.md, section 8.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from causeway.devices import device_records

from .known_bugs_cloud import ALL_HOSTS, KnownBugsCloud

SEVERAL = 8


def volumes_of_guest(cloud: KnownBugsCloud, server: Any) -> list[str]:
    """What the hypervisor gave the guest."""
    guest = cloud.driver(cloud.show(server).compute_host).files.guests[server.id]
    return [str(each.volume_id) for each in guest.volumes]


def test_a_volume_whose_attachment_somebody_deleted_is_detached(cloud: KnownBugsCloud) -> None:
    """1937084, 1978444: nothing is left to delete there; the guest and the server's record lose it all the same."""
    cloud.needs_devcloud("Cinder deletes no attachment behind Nova's back any more")
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)
    (attachment,) = cloud.attachments(server)
    gone = cloud.admin.block_storage.delete(f"/attachments/{attachment['id']}", microversion="3.70")
    assert gone.status_code == 200
    cloud.detach(server, volume)
    assert volumes_of_guest(cloud, server) == []
    assert cloud.wait(server, "ACTIVE").attached_volumes == []
    assert cloud.volume_becomes(volume, "available").status == "available"
    cloud.attach(server, volume)
    assert volumes_of_guest(cloud, server) == [volume.id]


def test_a_detach_waits_for_a_volume_service_that_answers_too_late(cloud: KnownBugsCloud) -> None:
    """1978444: a proxy answered 504 for it."""
    cloud.needs_devcloud("a proxy does not wait for the answer")
    server, volume = cloud.boot(), cloud.volume()
    cloud.attach(server, volume)
    cloud.fail("status", "/attachments/", service="volume", method="DELETE", status=504, times=1)
    cloud.detach(server, volume)
    assert cloud.volume_becomes(volume, "available").attachments == []
    assert cloud.attachments(server) == []


@pytest.fixture
def at_once(cloud: KnownBugsCloud) -> Callable[..., list[int]]:
    """The status codes of requests that several clients of one user send at the same time."""
    clients = [cloud.connection("demo").compute for _ in range(SEVERAL)]

    def ask(*requests: Callable[[Any], Any]) -> list[int]:
        with ThreadPoolExecutor(len(requests)) as pool:
            return list(pool.map(lambda request, client: int(request(client).status_code), requests, clients))

    return ask


def test_many_attaches_and_detaches_at_once_are_all_done_and_none_twice(
    cloud: KnownBugsCloud, at_once: Callable[..., list[int]]
) -> None:
    """1937375: of one volume one attach is taken; of several volumes all are, each under a name of its own."""
    server, wanted = cloud.boot(), cloud.volume()
    path = f"/servers/{server.id}/os-volume_attachments"

    def attach(volume: Any) -> Callable[[Any], Any]:
        return lambda client: client.post(path, json={"volumeAttachment": {"volumeId": volume.id}})

    def detach(volume: Any) -> Callable[[Any], Any]:
        return lambda client: client.delete(f"{path}/{volume.id}")

    def shown() -> list[str]:
        return [each.volume_id for each in cloud.member.compute.volume_attachments(server.id)]

    codes = sorted(at_once(*[attach(wanted)] * SEVERAL))
    assert codes[0] == 200 and set(codes[1:]) <= {400, 409}
    assert shown() == volumes_of_guest(cloud, server) == [wanted.id]
    assert [each["status"] for each in cloud.attachments(server)] == ["attached"]

    several = [cloud.volume() for _ in range(SEVERAL)]
    everything = {wanted.id, *(volume.id for volume in several)}
    assert at_once(*map(attach, several)) == [200] * SEVERAL
    assert sorted(shown()) == sorted(volumes_of_guest(cloud, server)) == sorted(everything)
    assert len({each.device for each in cloud.member.compute.volume_attachments(server.id)}) == len(everything)

    assert at_once(*map(detach, several)) == [202] * SEVERAL
    for volume in several:
        assert cloud.volume_becomes(volume, "available").status == "available"
    cloud.settle()
    assert shown() == volumes_of_guest(cloud, server) == [wanted.id]


def test_a_volume_that_is_being_attached_is_shown_whole_or_not_at_all(
    cloud: KnownBugsCloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2160224: never an answer of 500, and never one without the attachment's id."""
    server, volume = cloud.boot(), cloud.volume()
    path = f"/servers/{server.id}/os-volume_attachments"
    looks: list[str] = []
    wrong: list[Any] = []

    def look(when: str) -> None:
        looks.append(when)
        for version in ("2.1", "2.89", "2.96"):
            for asked in (path, f"{path}/{volume.id}"):
                answer = cloud.member.compute.get(asked, microversion=version)
                if answer.status_code not in (200, 404):
                    wrong.append((when, version, asked, answer.status_code))
                elif answer.status_code == 200 and version != "2.1":
                    found = answer.json()
                    shown = found.get("volumeAttachments", [found.get("volumeAttachment")])
                    wrong.extend((when, version, asked, each) for each in shown if not each["attachment_id"])

    def watch(target: Any, method: str) -> None:
        works = getattr(target, method)

        def watched(*order: Any, **named: Any) -> Any:
            look(f"before {method}")
            answer = works(*order, **named)
            look(f"after {method}")
            return answer

        monkeypatch.setattr(target, method, watched)

    watch(device_records, "reserve_volume")
    for host in ALL_HOSTS:
        watch(cloud.driver(host), "attach_volume")
    cloud.attach(server, volume)
    assert looks == [
        f"{side} {method}" for method in ("reserve_volume", "attach_volume") for side in ("before", "after")
    ]
    assert wrong == []

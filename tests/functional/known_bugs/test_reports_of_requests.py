"""Reports of what the API takes, refuses and lists, from people who run OpenStack.

Numbers are bugs on Launchpad. See docs/known-bugs.md, section 8.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from .known_bugs_cloud import KnownBugsCloud


@contextmanager
def limited(cloud: KnownBugsCloud, user_id: str | None = None, **limits: int) -> Iterator[None]:
    """The project of the users, or one user in it, has limits of its own for a while."""
    path = f"/os-quota-sets/{cloud.member.current_project_id}" + (f"?user_id={user_id}" if user_id else "")
    answer = cloud.admin.compute.put(path, json={"quota_set": limits}, microversion="2.1")
    assert answer.status_code == 200, answer.text
    try:
        yield
    finally:
        assert cloud.admin.compute.delete(path).status_code == 202


def creation(cloud: KnownBugsCloud, *, who: Any = None, hints: dict[str, Any] | None = None, **fields: Any) -> Any:
    """The answer to the request for a server without ports."""
    server = {"name": "asked-for", "flavorRef": "any.small", "imageRef": cloud.image_id, "networks": "none"} | fields
    body = {"server": server} | ({"os:scheduler_hints": hints} if hints else {})
    return (who or cloud.member).compute.post("/servers", json=body)


def servers(cloud: KnownBugsCloud) -> list[str]:
    return [each.id for each in cloud.admin.compute.servers(details=False)]


def test_all_servers_of_one_request_count_as_members_of_their_group(cloud: KnownBugsCloud) -> None:
    """1780373: too many members, and none is made. Requests at once: tests/functional/api/quota/test_requests_at_once.py."""
    group = cloud.member.compute.create_server_group(name="near", policy="soft-affinity")
    with limited(cloud, server_group_members=2):
        assert creation(cloud, hints={"group": group.id}, min_count=3).status_code == 403
        assert servers(cloud) == []
        assert creation(cloud, hints={"group": group.id}, min_count=2).status_code == 202
        assert creation(cloud, hints={"group": group.id}).status_code == 403
    cloud.settle()
    assert len(servers(cloud)) == 2
    cloud.clean()
    cloud.member.compute.delete_server_group(group)


def test_a_users_own_quota_limits_nobody_else_and_ends_when_it_is_deleted(cloud: KnownBugsCloud) -> None:
    """1893284: users of one project, one of them with less than the project."""
    with limited(cloud, cloud.member.current_user_id, instances=1):
        codes = [creation(cloud, who=who).status_code for who in (cloud.member, cloud.member, cloud.admin, cloud.admin)]
        assert codes == [202, 403, 202, 202]
    assert creation(cloud).status_code == 202
    cloud.settle()


def test_deleted_servers_are_listed_page_by_page(cloud: KnownBugsCloud) -> None:
    """1849409: the marker may be of a deleted server; each comes once."""
    made = [cloud.boot(name=f"paged-{number}", networks="none").id for number in range(3)]
    cloud.clean()
    query, seen = "/servers?deleted=true&name=paged-&limit=1", list[str]()
    for _page in range(len(made) + 1):
        answer = cloud.admin.compute.get(query + (f"&marker={seen[-1]}" if seen else ""))
        assert answer.status_code == 200, answer.text
        seen += [each["id"] for each in answer.json()["servers"]]
    assert sorted(seen) == sorted(made)


def test_images_that_nothing_boots_from_are_refused(cloud: KnownBugsCloud) -> None:
    """1895696: one without data, and one for a larger volume. An encrypted one: tests/security/images/clouds/test_records.py."""
    queued = cloud.member.image.post(
        "/images", json={"name": "queued", "disk_format": "raw", "container_format": "bare"}
    ).json()["id"]
    assert creation(cloud, imageRef=queued).status_code == 400
    large = cloud.image_with("large", min_disk=20)
    root = {
        "uuid": large.id,
        "source_type": "image",
        "destination_type": "volume",
        "boot_index": 0,
        "volume_size": 1,
    }
    before = {each.id for each in cloud.admin.block_storage.volumes(details=False, all_projects=True)}
    assert creation(cloud, imageRef="", block_device_mapping_v2=[root]).status_code == 400
    assert {each.id for each in cloud.admin.block_storage.volumes(details=False, all_projects=True)} == before
    assert servers(cloud) == []
    cloud.member.image.delete_image(queued)
    cloud.member.image.delete_image(large)


@pytest.fixture
def twins(cloud: KnownBugsCloud) -> Iterator[list[Any]]:
    """Two security groups of one name, and one whose name is the uuid of the first."""
    network = cloud.member.network
    made = [network.create_security_group(name="twins") for _ in range(2)]
    made.append(network.create_security_group(name=made[0].id))
    yield made
    cloud.clean()
    for group in made:
        network.delete_security_group(group)


def test_a_security_group_is_meant_by_its_uuid_and_by_its_name_only_if_that_is_its_own(
    cloud: KnownBugsCloud, twins: list[Any]
) -> None:
    """2105896: of two groups of one name none is guessed, and nothing fails later because of it."""
    first, second, _named_as_first = twins

    def groups_of(server: Any) -> set[str]:
        (port,) = cloud.admin.network.ports(device_id=server.id)
        return set(port.security_group_ids)

    server = cloud.boot(security_groups=[{"name": second.id}])
    assert groups_of(server) == {second.id}
    assert cloud.act(server, {"addSecurityGroup": {"name": first.id}}).status_code == 202
    assert groups_of(server) == {first.id, second.id}
    assert cloud.act(server, {"addSecurityGroup": {"name": "twins"}}).status_code in (400, 409)
    networks = [{"uuid": cloud.network_id}]
    assert creation(cloud, networks=networks, security_groups=[{"name": "twins"}]).status_code in (400, 409)
    assert servers(cloud) == [server.id]

"""The API still takes a token whose rights have ended: what is named with it is refused, and nothing is left half done.

keystonemiddleware remembers for a while that a token is good. Services around ask the identity service and answer 401. In their
place our own credentials would open every image, volume and network of the cloud.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from causeway.audit import audit_embedded
from causeway.conductor.endpoints.image_caching import ImageCachingEndpoint
from causeway.context import RequestContext
from tests.functional.servers.moves_cloud import Cloud
from tests.security.credentials.attackers import (
    IN_THEIR_NAME,
    USES,
    Caller,
    Things,
    caller,
    revoke,
    things_of,
    without_roles,
)

CLOUD: dict[str, Any] = {"hosts_per_cell": 1}


@pytest.fixture(scope="module")
def of_others(module_cloud: Cloud) -> Things:
    """What another project has."""
    return things_of(module_cloud.connection("other"))


@pytest.fixture(scope="module")
def own(module_cloud: Cloud) -> Things:
    return things_of(module_cloud.connection("demo"))


@pytest.fixture
def server(cloud: Cloud) -> Any:
    return cloud.boot(flavor="any.small")


@pytest.fixture
def revoked(cloud: Cloud, server: Any) -> Caller:  # noqa: ARG001 - the server is made before
    found = caller(cloud, "demo")
    revoke(cloud, found)
    return found


@pytest.fixture
def unchanged(cloud: Cloud, server: Any) -> Iterator[None]:
    """After the test everything is as it was before."""
    before = seen(cloud, server)
    yield
    cloud.heal()
    cloud.settle()
    assert seen(cloud, server) == before
    assert audit_embedded(cloud.parts, pause=0.01).disagreements == []


def seen(cloud: Cloud, server: Any) -> dict[str, Any]:
    found = cloud.show(server)
    return {
        "servers": sorted(each.id for each in cloud.admin.compute.servers(all_projects=True)),
        "server": (found.status, found.task_state, found.image["id"], sorted(map(str, found.security_groups or []))),
        "volumes": sorted((each.id, each.status) for each in cloud.admin.block_storage.volumes(all_projects=True)),
        "images": sorted(each.id for each in cloud.connection("admin").image.images()),
        "ports": sorted((each.id, each.device_id) for each in cloud.admin.network.ports()),
        "attachments": cloud.attachments(server),
    }


def message_of(answer: requests.Response) -> str:
    (error,) = answer.json().values()
    return str(error["message"])


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("attack", USES)
def test_a_revoked_token_uses_nothing_of_another_project(
    attack: str, revoked: Caller, server: Any, of_others: Things
) -> None:
    for _again in range(2):
        answer = USES[attack](revoked, server.id, of_others)
        assert answer.status_code == 401, answer.text
        assert "Log in again" in message_of(answer)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("attack", [*USES, *IN_THEIR_NAME])
def test_a_revoked_token_uses_nothing_of_its_own_project_either(
    attack: str, revoked: Caller, server: Any, own: Things
) -> None:
    answer = (USES | IN_THEIR_NAME)[attack](revoked, server.id, own)
    assert answer.status_code == 401, answer.text
    assert "Log in again" in message_of(answer)


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("attack", USES)
def test_a_token_whose_roles_were_removed_uses_nothing(
    attack: str, cloud: Cloud, server: Any, of_others: Things
) -> None:
    found = caller(cloud, "demo")
    with without_roles(cloud, "demo"):
        answer = USES[attack](found, server.id, of_others)
    assert answer.status_code in (401, 403), answer.text


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("status", [401, 403, 404])
@pytest.mark.parametrize("attack", USES)
def test_what_a_service_refuses_to_the_user_is_refused(
    attack: str, status: int, cloud: Cloud, server: Any, own: Things
) -> None:
    """Whatever the service's reason is: a policy of its own, a role that was removed, or that it is another project's."""
    user = caller(cloud, "demo")
    cloud.needs_devcloud("services that refuse")
    for service, path in (("image", "/v2/images/"), ("volume", "/v3/"), ("network", "/v2.0/(ports|networks)")):
        cloud.fail("status", service=service, method="GET", path=path, status=status)
    answer = USES[attack](user, server.id, own)
    assert answer.status_code in {401: (401,), 403: (403, 404), 404: (400, 404)}[status], answer.text


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("attack", USES)
def test_a_valid_token_uses_nothing_of_another_project(
    attack: str, cloud: Cloud, server: Any, of_others: Things
) -> None:
    answer = USES[attack](caller(cloud, "demo"), server.id, of_others)
    assert answer.status_code in (400, 403, 404), answer.text


def test_a_token_in_another_header_does_not_make_requests_without_a_token(
    cloud: Cloud, server: Any, of_others: Things
) -> None:
    """keystonemiddleware takes X-Storage-Token too. A request without a token of its own would be the system's."""
    found = caller(cloud, "demo")
    stored, found.token = found.token, ""

    class Stored(Caller):
        def ask(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
            sent = {"X-Storage-Token": stored, "OpenStack-API-Version": "compute 2.96", **headers}
            return requests.request(method, self.url + path, json=body, headers=sent, timeout=60)

    answer = Stored(found.url, "").ask("GET", "/flavors")
    assert answer.status_code == 401
    body = {"volumeAttachment": {"volumeId": of_others.volume}}
    assert Stored(found.url, "").ask("POST", f"/servers/{server.id}/os-volume_attachments", body).status_code == 401


@pytest.mark.usefixtures("unchanged")
def test_a_revoked_administrator_swaps_no_volume(cloud: Cloud, server: Any, own: Things, of_others: Things) -> None:
    found = caller(cloud, "admin", "demo")
    revoke_as(cloud, found)
    body = {"volumeAttachment": {"volumeId": of_others.volume}}
    # Later versions look into the server's record first.
    version = {"OpenStack-API-Version": "compute 2.84"}
    answer = found.ask("PUT", f"/servers/{server.id}/os-volume_attachments/{own.volume}", body, **version)
    assert answer.status_code == 401, answer.text


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("action", ["addFixedIp", "removeFixedIp"])
def test_a_revoked_token_changes_no_address(action: str, cloud: Cloud, server: Any, revoked: Caller) -> None:
    (address,) = [each["addr"] for each in cloud.show(server).addresses["demo-net"]]
    body = {"addFixedIp": {"networkId": cloud.network_id}, "removeFixedIp": {"address": address}}[action]
    version = {"OpenStack-API-Version": "compute 2.43"}
    answer = revoked.ask("POST", f"/servers/{server.id}/action", {action: body}, **version)
    assert answer.status_code == 401, answer.text


@pytest.mark.parametrize("is_revoked", [True, False])
def test_hosts_cache_only_images_that_are_shown_to_the_requester(
    cloud: Cloud, of_others: Things, is_revoked: bool
) -> None:
    """Hosts fetch images with credentials of their own."""
    found = caller(cloud, "admin", "demo")
    if is_revoked:
        revoke_as(cloud, found)
    context = RequestContext(auth_token=found.token, user_id="admin", project_id="demo", overwrite=False)
    (aggregate,) = [each for each in cloud.admin.compute.aggregates() if each.name == "gen1"]
    endpoint = ImageCachingEndpoint(cloud.embedded.conductor._services)
    endpoint.cache_images(context, aggregate_id=aggregate.id, image_ids=[of_others.image])
    caches = [cloud.embedded.computes[host].host.image_cache for host in aggregate.hosts]
    assert [cache.path(of_others.image).exists() for cache in caches] == [not is_revoked]


def revoke_as(cloud: Cloud, found: Caller) -> None:
    """Revokes an administrator's token with another one of theirs."""
    cloud.connection("admin").identity.delete("/auth/tokens", headers={"X-Subject-Token": found.token})

"""Users whose rights end while Causeway still takes their token, and what other projects have that they would like to use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import requests

from tests.functional.servers.moves_cloud import Cloud

# The latest that the API has.
MICROVERSION = "2.96"


@dataclass
class Caller:
    """A token in use: no client that would get itself a new one."""

    url: str
    token: str

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        sent = {"X-Auth-Token": self.token, "OpenStack-API-Version": f"compute {MICROVERSION}", **headers}
        return requests.request(method, self.url + path, json=body, headers=sent, timeout=60)


def caller(cloud: Cloud, user: str, project: str | None = None) -> Caller:
    """A user whose token the API has seen, and remembers."""
    connection = cloud.connection(user, project)
    found = Caller(connection.compute.get_endpoint(), connection.authorize())
    assert found.ask("GET", "/flavors").status_code == 200
    return found


def revoke(cloud: Cloud, found: Caller) -> None:
    cloud.admin.identity.delete("/auth/tokens", headers={"X-Subject-Token": found.token})


@contextmanager
def without_roles(cloud: Cloud, user: str) -> Iterator[None]:
    """Removes all of a user's roles in their project, and assigns them again."""
    identity = cloud.connection("admin").identity
    account = cloud.parts.accounts[user]
    user_id = next(each.id for each in identity.users() if each.name == user)
    project_id = next(each.id for each in identity.projects() if each.name == account.project_name)
    grants = f"/projects/{project_id}/users/{user_id}/roles"
    roles = [each["id"] for each in identity.get(grants).json()["roles"]]
    for role in roles:
        assert identity.delete(f"{grants}/{role}").status_code == 204
    try:
        yield
    finally:
        for role in roles:
            assert identity.put(f"{grants}/{role}").status_code == 204


@dataclass
class Things:
    """What a project has."""

    image: str
    volume: str
    snapshot: str
    network: str
    port: str


def things_of(connection: Any) -> Things:
    storage, network = connection.block_storage, connection.network
    image = connection.image.create_image(
        name="private", container="bare", disk_format="raw", data=b"x" * 512, visibility="private"
    )
    volume = storage.create_volume(size=1, image_id=image.id, name="private")
    storage.wait_for_status(volume, "available", interval=0.05)
    snapshot = storage.create_snapshot(volume_id=volume.id, name="private")
    storage.wait_for_status(snapshot, "available", interval=0.05)
    net = network.create_network(name="private")
    network.create_subnet(network_id=net.id, ip_version=4, cidr="10.77.0.0/24")
    port = network.create_port(network_id=net.id)
    return Things(image.id, volume.id, snapshot.id, net.id, port.id)


def remove(connection: Any, things: Things) -> None:
    storage, network = connection.block_storage, connection.network
    network.delete_port(things.port)
    network.delete_network(things.network)
    storage.delete_snapshot(things.snapshot)
    storage.wait_for_delete(storage.find_snapshot(things.snapshot) or things_gone(), interval=0.05)
    storage.delete_volume(things.volume)
    connection.image.delete_image(things.image)


def things_gone() -> Any:
    raise AssertionError


Attack = Callable[[Caller, str, Things], requests.Response]


def _boot(fields: Callable[[Things], dict[str, Any]]) -> Attack:
    def attack(user: Caller, _server: str, things: Things) -> requests.Response:
        flavor = next(
            each["id"] for each in user.ask("GET", "/flavors").json()["flavors"] if each["name"] == "any.small"
        )
        server = {"name": "attack", "flavorRef": flavor, "networks": "none"} | fields(things)
        return user.ask("POST", "/servers", {"server": server})

    return attack


def _root(source: str, thing: Callable[[Things], str], destination: str = "volume") -> Attack:
    return _boot(
        lambda things: {
            "block_device_mapping_v2": [
                {
                    "boot_index": 0,
                    "source_type": source,
                    "destination_type": destination,
                    "uuid": thing(things),
                    "volume_size": 1,
                    "delete_on_termination": True,
                }
            ]
        }
    )


def _act(name: str, body: Callable[[Things], Any]) -> Attack:
    return lambda user, server, things: user.ask("POST", f"/servers/{server}/action", {name: body(things)})


def _put(path: str, body: Callable[[Things], Any]) -> Attack:
    return lambda user, server, things: user.ask("POST", f"/servers/{server}/{path}", body(things))


# What uses a thing that the user names.
USES: dict[str, Attack] = {
    "boot from an image": _boot(lambda things: {"imageRef": things.image}),
    "boot from a volume": _root("volume", lambda things: things.volume),
    "boot from a volume made from a snapshot": _root("snapshot", lambda things: things.snapshot),
    "boot from a volume made from an image": _root("image", lambda things: things.image),
    "attach a volume": _put("os-volume_attachments", lambda things: {"volumeAttachment": {"volumeId": things.volume}}),
    "attach a port": _put("os-interface", lambda things: {"interfaceAttachment": {"port_id": things.port}}),
    "attach to a network": _put("os-interface", lambda things: {"interfaceAttachment": {"net_id": things.network}}),
    "rebuild": _act("rebuild", lambda things: {"imageRef": things.image}),
    "rescue": _act("rescue", lambda things: {"rescue_image_ref": things.image}),
}
# What needs no thing of another project, but makes or reads something in the user's name.
IN_THEIR_NAME: dict[str, Attack] = {
    "attach to any network": _put("os-interface", lambda _things: {}),
    "make an image": _act("createImage", lambda _things: {"name": "attack"}),
    "make a backup": _act("createBackup", lambda _things: {"name": "attack", "backup_type": "daily", "rotation": 1}),
    "shelve": _act("shelve", lambda _things: None),
    "add a security group": _act("addSecurityGroup", lambda _things: {"name": "default"}),
}

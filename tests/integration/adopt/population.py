"""Servers in many states, made through Nova's API: what is there to be taken over. Their guests count (`outside.counting`)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from platformdirs import user_cache_path

from causeway.virt.lab.guest_image import build_guest_image
from tests.functional.processes.own_process import until
from tests.integration.adopt import outside
from tests.integration.adopt.nova_cloud import NovaCloud

PATIENCE = 600.0
# generation -> cell: a flavor of a generation is tied to the hosts of its cell.
GENERATIONS = {"gen1": "cell1", "gen2": "cell2"}
_PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEVyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy population"


@dataclass(frozen=True)
class Specimen:
    """A kind of server. ``then``: what happens to it when its guest has booted; ``status``: what it has in the end.

    ``given``: more of the request for it. ``boots``: it has a guest that boots.
    """

    flavor: str = "gen1.small"
    given: Callable[[Populator], Mapping[str, Any]] = lambda _populator: {}
    then: Callable[[Populator, Any], object] = lambda _populator, _server: None
    status: str = "ACTIVE"
    boots: bool = True


@dataclass(frozen=True)
class Population:
    """``servers``: name -> uuid; ``volumes``: name of a server -> its attached data volume."""

    servers: Mapping[str, str]
    volumes: Mapping[str, str]
    running: frozenset[str] = field(default_factory=frozenset)


class Populator:
    """``admin`` and ``member`` are openstacksdk connections; the servers are in the project of both."""

    def __init__(self, cloud: NovaCloud) -> None:
        self.cloud = cloud
        self.admin, self.member = cloud.nova.connection("admin"), cloud.nova.connection("demo")
        self.volumes: dict[str, str] = {}
        self.image, self.network, self.second_network = self._prepare()

    def populate(self, names: Iterable[str]) -> Population:
        """Servers of these names of `SPECIMENS`, all at once."""
        return self.make({name: SPECIMENS[name] for name in names})

    def make(self, wanted: Mapping[str, Specimen], *, seconds: int = 1) -> Population:
        """``wanted``: the name of each server -> what it is. ``seconds``: between the numbers that its guest counts."""
        user_data = b64encode(outside.counting(seconds).encode()).decode()
        servers = {name: self._create(name, specimen, user_data) for name, specimen in wanted.items()}
        for name, specimen in wanted.items():
            if specimen.boots:
                self.wait(servers[name], "ACTIVE")
        for name, specimen in wanted.items():
            if specimen.boots:
                outside.await_tick(self.cloud, servers[name].id)
                specimen.then(self, servers[name])
        for name, specimen in wanted.items():
            self.wait(servers[name], specimen.status)
        uuids = {name: server.id for name, server in servers.items()}
        running = frozenset(name for name, specimen in wanted.items() if specimen.boots and specimen.status == "ACTIVE")
        return Population(uuids, dict(self.volumes), running)

    def wait(self, server: Any, status: str) -> Any:
        def look() -> Any:
            return self.admin.compute.get_server(server.id)

        def settled(found: Any) -> bool:
            return found.status in (status, "ERROR") and found.task_state is None

        found = until(look, settled, f"{server.name} to become {status}", PATIENCE)
        assert found.status == status, f"{server.name}: {found.status}: {found.fault}"
        return found

    def volume(self, **fields: Any) -> Any:
        made = self.member.block_storage.create_volume(size=1, **fields)
        return self.member.block_storage.wait_for_status(made, "available", wait=PATIENCE)

    def attach_volume(self, server: Any) -> None:
        made = self.volume(name="data")
        outside.fill(outside.volume_file(self.cloud, made.id))
        self.member.compute.create_volume_attachment(server, volumeId=made.id)
        self.await_volume(made.id, "in-use")
        self.volumes[server.name] = made.id

    def await_volume(self, volume: str, status: str) -> None:
        volumes = self.admin.block_storage
        until(lambda: volumes.get_volume(volume).status, status.__eq__, f"volume {volume} to be {status}", PATIENCE)

    def close(self) -> None:
        for connection in (self.admin, self.member):
            connection.close()

    def _create(self, name: str, specimen: Specimen, user_data: str) -> Any:
        fields: dict[str, Any] = {
            "image_id": self.image,
            "networks": [{"uuid": self.network}],
            "key_name": "key",
            "config_drive": True,
            "user_data": user_data,
            **specimen.given(self),
        }
        return self.member.compute.create_server(name=name, flavor_id=specimen.flavor, **fields)

    def _prepare(self) -> tuple[str, str, str]:
        self._lift_quota()
        for generation, cell in GENERATIONS.items():
            self._tie(generation, self.cloud.nova.cells[cell])
        self._flavor("any.small", vcpus=1, ram=128)
        image = build_guest_image(user_cache_path("causeway") / "guest-image")
        images = self.member.image
        made = images.create_image(
            name="image", disk_format="qcow2", container_format="bare", filename=str(image.path), wait=True
        )
        self.member.compute.create_keypair(name="key", public_key=_PUBLIC_KEY)
        return made.id, self._network("net", "10.0.0.0/24"), self._network("net2", "10.0.1.0/24")

    def _network(self, name: str, cidr: str) -> str:
        made = self.member.network.create_network(name=name)
        self.member.network.create_subnet(network_id=made.id, ip_version=4, cidr=cidr)
        return str(made.id)

    def _lift_quota(self) -> None:
        project = self.admin.identity.find_project("demo").id
        self.admin.compute.update_quota_set(project, instances=-1, cores=-1, ram=-1)

    def _flavor(self, name: str, **fields: int) -> Any:
        return self.admin.compute.create_flavor(id=name, name=name, disk=1, **fields)

    def _tie(self, generation: str, hosts: Iterable[str]) -> None:
        """Flavors of a generation, which only these hosts serve."""
        compute = self.admin.compute
        aggregate = compute.create_aggregate(name=generation)
        compute.set_aggregate_metadata(aggregate, {"generation": generation})
        for host in hosts:
            compute.add_host_to_aggregate(aggregate, host)
        sizes: dict[str, dict[str, int]] = {
            "small": {"vcpus": 1, "ram": 128},
            "large": {"vcpus": 2, "ram": 128},
            "disks": {"vcpus": 1, "ram": 128, "ephemeral": 1, "swap": 64},
            "more": {"vcpus": 2, "ram": 128, "ephemeral": 1, "swap": 64},
            "huge": {"vcpus": 1, "ram": 10**6},
        }
        for size, fields in sizes.items():
            flavor = self._flavor(f"{generation}.{size}", **fields)
            compute.create_flavor_extra_specs(flavor, {"aggregate_instance_extra_specs:generation": generation})


def _root_on_volume(populator: Populator) -> Mapping[str, Any]:
    device = {"boot_index": 0, "uuid": populator.image, "source_type": "image", "destination_type": "volume"}
    return {"image_id": "", "block_device_mapping": [{**device, "volume_size": 1, "delete_on_termination": True}]}


def _two_ports(populator: Populator) -> Mapping[str, Any]:
    return {"networks": [{"uuid": populator.network, "tag": "front"}, {"uuid": populator.second_network}]}


def _in_group(populator: Populator) -> Mapping[str, Any]:
    group = populator.member.compute.create_server_group(name="apart", policy="soft-anti-affinity")
    return {"scheduler_hints": {"group": group.id}}


def _described(_populator: Populator) -> Mapping[str, Any]:
    return {"metadata": {"owner": "ops"}, "tags": ["blue", "prod"], "description": "a plain server"}


#: name -> what is made of that name
SPECIMENS: dict[str, Specimen] = {
    "active": Specimen(given=_described),
    "datavol": Specimen(given=_two_ports, then=Populator.attach_volume),
    "disks": Specimen("gen1.disks"),
    "stopped": Specimen(then=lambda all_, server: all_.member.compute.stop_server(server), status="SHUTOFF"),
    "verify": Specimen(
        then=lambda all_, server: all_.member.compute.resize_server(server, "gen1.large"), status="VERIFY_RESIZE"
    ),
    "bootvol": Specimen("gen2.small", given=_root_on_volume),
    "paused": Specimen(
        "gen2.small", then=lambda all_, server: all_.member.compute.pause_server(server), status="PAUSED"
    ),
    "suspended": Specimen(
        "gen2.small", then=lambda all_, server: all_.member.compute.suspend_server(server), status="SUSPENDED"
    ),
    "shelved": Specimen(
        "gen2.small", then=lambda all_, server: all_.member.compute.shelve_server(server), status="SHELVED_OFFLOADED"
    ),
    "rescued": Specimen(
        "gen2.small", then=lambda all_, server: all_.member.compute.rescue_server(server), status="RESCUE"
    ),
    "locked": Specimen(
        "gen2.small", then=lambda all_, server: all_.admin.compute.lock_server(server, locked_reason="by the operators")
    ),
    "member": Specimen("gen2.small", given=_in_group),
    "nohost": Specimen("gen2.huge", status="ERROR", boots=False),
    "softdel": Specimen(
        "gen2.small", then=lambda all_, server: all_.member.compute.delete_server(server), status="SOFT_DELETED"
    ),
}
#: those that show most for their time
USUAL = ("active", "datavol", "stopped", "bootvol", "paused", "member", "nohost", "softdel")
#: as USUAL, and all others that Causeway takes over: a server that waits for confirm is settled in Nova before
ALL = tuple(name for name in SPECIMENS if name != "verify")

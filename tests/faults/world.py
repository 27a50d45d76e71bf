"""Everything that is there at one moment, as the services and the hosts themselves say; and what of it is a server's.

Nothing here knows how an operation is carried out: a server is compared with what it was before, and with what it should be.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any

from causeway.store.api import mappings
from tests.faults.clouds import shared_store
from tests.faults.clouds.site import Site
from tests.faults.moves.users import mark

Json = dict[str, Any]


@dataclass
class World:
    """Records by their ids; ``allocations``: consumer -> host -> VCPUs."""

    servers: dict[str, Json]
    ports: dict[str, Json]
    volumes: dict[str, Json]
    attachments: dict[str, Json]
    snapshots: dict[str, Json]
    images: dict[str, Json]
    allocations: dict[str, dict[str, int]]
    # Of hosts: "guest UUID on HOST" and "disks UUID on HOST".
    on_hosts: set[str]
    # server -> the migration that waits for confirm or revert
    waiting: dict[str, Json]
    # Servers that a list has more than once.
    twice: list[str]

    def new_since(self, before: World) -> Iterator[tuple[str, str]]:
        """(what it is, its id) of everything that was not there before, but for servers."""
        for kind in ("port", "volume", "attachment", "snapshot", "image"):
            then, now = getattr(before, f"{kind}s"), getattr(self, f"{kind}s")
            yield from ((kind, each) for each in now if each not in then)
        yield from (("allocations of", each) for each in self.allocations if each not in before.allocations)
        yield from ((each.split(" ", 1)[0], each.split(" ", 1)[1]) for each in sorted(self.on_hosts - before.on_hosts))


def see(site: Site) -> World:
    compute, network, storage, image = (
        getattr(site.admin, service) for service in ("compute", "network", "block_storage", "image")
    )
    everybody = {"all_tenants": "1"}
    servers = compute.get("/servers/detail", params=everybody).json()["servers"]
    waiting = compute.get("/os-migrations", params={"status": "finished"}).json()["migrations"]
    images = _by_id(image.get("/images", params={"limit": 1000}).json()["images"])
    return World(
        servers=_by_id(servers),
        ports=_by_id(network.get("/ports").json()["ports"]),
        volumes=_by_id(storage.get("/volumes/detail", params=everybody).json()["volumes"]),
        attachments=_by_id(storage.get("/attachments/detail", params=everybody).json()["attachments"]),
        snapshots=_by_id(storage.get("/snapshots/detail", params=everybody).json()["snapshots"]),
        images=images,
        allocations=_allocations(site),
        on_hosts=set(_on_hosts(site)) | _data_without_image(site, images),
        waiting={each["instance_uuid"]: each for each in waiting},
        twice=sorted(each for each, count in Counter(server["id"] for server in servers).items() if count > 1),
    )


def _data_without_image(site: Site, images: dict[str, Json]) -> set[str]:
    """What hosts have made where the image service keeps its images, and it does not know."""
    kept = (site.state.devcloud / "images").glob("*-*-*-*-*") if site.stores else ()
    return {f"data of image {path.name}, which has no record" for path in kept if path.name not in images}


def named_snapshots(image: Json) -> list[str]:
    """Those that an image of a volume-backed server names."""
    mapping = json.loads(image.get("block_device_mapping") or "[]")
    return [each["snapshot_id"] for each in mapping if each.get("snapshot_id")]


def _by_id(records: list[Json]) -> dict[str, Json]:
    return {record["id"]: record for record in records}


def _allocations(site: Site) -> dict[str, dict[str, int]]:
    placement, found = site.admin.placement, dict[str, dict[str, int]]()
    for provider in placement.get("/resource_providers").json()["resource_providers"]:
        held = placement.get(f"/resource_providers/{provider['uuid']}/allocations").json()["allocations"]
        for consumer, what in held.items():
            # Whoever has CPUs of a host may have disk of a provider that hosts share, too.
            if "VCPU" in what["resources"]:
                found.setdefault(consumer, {})[provider["name"]] = what["resources"]["VCPU"]
    return found


def _on_hosts(site: Site) -> Iterator[str]:
    for host in site.hosts:
        base = site.state.host(host)
        yield from (f"guest {path.stem} on {host}" for path in (base / "guests").glob("*.json"))
        yield from (f"incoming {path.stem} on {host}" for path in (base / "incoming").glob("*.json"))
        yield from (f"disks {path.name} on {host}" for path in (base / "instances").glob("*") if path.is_dir())
    yield from (f"{path.parent.name} {path.name} in the store" for path in shared_store.files(site))


# What snapshots are called that hypervisors make, and where it stands how far they are.
ASSISTED, PROGRESS = "assisted", "os-extended-snapshot-attributes:progress"


@dataclass
class Holding:
    """What is a server's. ``status`` None: the Compute API knows no such server.

    ``volumes``: id -> status of those that its record or an attachment names, and of the user's own volume of the case.
    ``ports``: id -> (host, status) of those that the network service says are the server's. ``owners``: whose all this is.
    ``source``: the host that keeps what a revert needs; ``held``: the allocations of the migration that waits. ``cell``: the id
    of the one that it lives in. ``snapshots``: states of those that its images name (None: there is none); ``unnamed``: snapshots
    of its volumes that none of them names. ``has_moved_volume``: block storage has moved one that it has.
    ``assisted``: the snapshots of its volumes of which block storage knows that a hypervisor has done its part.
    ``attachment_ids``: which may be others though nothing has changed.
    """

    status: str | None
    task: str | None
    fault: str | None
    host: str | None
    vcpus: int
    addresses: set[str]
    ports_addresses: set[str]
    recorded_volumes: list[str]
    guests: dict[str, str]
    devices: dict[str, list[str]]
    disks: dict[str, list[str]]
    marks: int
    allocations: dict[str, int]
    ports: dict[str, tuple[str, str]]
    attachments: list[tuple[str, str]]
    volumes: dict[str, str]
    images: list[tuple[str, str]]
    snapshots: list[str | None]
    unnamed: list[str]
    owners: set[str]
    source: str | None = None
    held: dict[str, int] = field(default_factory=dict)
    cell: str | None = None
    has_moved_volume: bool = False
    assisted: list[str] = field(default_factory=list)
    attachment_ids: list[str] = field(default_factory=list)

    def differences(self, other: Holding) -> list[str]:
        """In which fields they differ, and how."""
        return [
            f"{each.name}: {getattr(self, each.name)}, before {getattr(other, each.name)}"
            for each in fields(self)
            if getattr(self, each.name) != getattr(other, each.name) and each.name not in ("fault", "attachment_ids")
        ]


def holding(site: Site, world: World, uuid: str | None, volume_id: str | None = None) -> Holding:
    server = world.servers.get(uuid or "", {})
    ports = [port for port in world.ports.values() if uuid and port["device_id"] == uuid]
    attachments = [each for each in world.attachments.values() if uuid and each["instance"] == uuid]
    images = [image for image in world.images.values() if uuid and image.get("instance_uuid") == uuid]
    recorded = sorted(each["id"] for each in server.get("os-extended-volumes:volumes_attached", []))
    named = {*recorded, *(each["volume_id"] for each in attachments), *([volume_id] if volume_id else [])}
    volumes = {each: world.volumes[each] for each in sorted(named) if each in world.volumes}
    guests = site.guests.power_states(uuid) if uuid else {}
    (only_host,) = guests if len(guests) == 1 else (None,)
    waiting = world.waiting.get(uuid or "", {})
    in_images = [each for image in images for each in named_snapshots(image)]
    of_volumes = [each for each in world.snapshots.values() if each["volume_id"] in volumes]
    assisted = [each for each in of_volumes if each["name"] == ASSISTED]
    return Holding(
        status=server.get("status"),
        task=server.get("OS-EXT-STS:task_state"),
        fault=(server.get("fault") or {}).get("message"),
        host=server.get("OS-EXT-SRV-ATTR:host"),
        vcpus=server.get("flavor", {}).get("vcpus", 0),
        addresses={each["OS-EXT-IPS-MAC:mac_addr"] for of in server.get("addresses", {}).values() for each in of},
        ports_addresses={port["mac_address"] for port in ports},
        recorded_volumes=recorded,
        guests={host: state.name for host, state in guests.items()},
        devices={host: sorted(ids) for host, ids in site.guests.devices(uuid).items()} if uuid else {},
        disks=site.guests.disks(uuid) if uuid else {},
        marks=site.guests.marks(uuid, only_host, mark(uuid)) if uuid and only_host else 0,
        allocations=world.allocations.get(uuid or "", {}),
        ports={port["id"]: (port["binding:host_id"], port["status"]) for port in ports},
        attachments=sorted((each["volume_id"], each["status"]) for each in attachments),
        attachment_ids=sorted(each["id"] for each in attachments),
        volumes={each: volume["status"] for each, volume in volumes.items()},
        images=sorted((image["name"], image["status"]) for image in images),
        snapshots=[world.snapshots.get(each, {}).get("status") for each in in_images],
        unnamed=sorted(each["id"] for each in of_volumes if each["id"] not in in_images and each not in assisted),
        owners={volume["os-vol-tenant-attr:tenant_id"] for volume in volumes.values()}
        | {port["project_id"] for port in ports}
        | {image["owner"] for image in images},
        source=waiting.get("source_compute"),
        held=world.allocations.get(waiting.get("uuid", ""), {}),
        assisted=sorted(each["id"] for each in assisted if each[PROGRESS] == "90%"),
        has_moved_volume=any(world.volumes.get(each, {}).get("migration_status") == "success" for each in recorded),
        cell=mappings.cells_of(site.api, [uuid]).get(uuid) if uuid and server else None,
    )

"""``POST /servers`` (and ``/os-volumes_boot`` before 2.103).

Everything that can be refused is refused before anything is written. Then each server gets its mapping without a cell, its
request spec, its build request, its place in a server group and the operation that builds it, in one transaction of the API
database for all servers of the request; a conductor does the rest.
"""

from __future__ import annotations

import re
import secrets
import string
import uuid as uuids
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
import sqlalchemy as sa

from causeway import errors
from causeway.api import zones
from causeway.api.answers import servers as answers
from causeway.api.quotas import quota
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas.common import to_bool
from causeway.api.servers import flavors_and_images, holds, passwords
from causeway.api.servers.creating import access_addresses, create_devices, create_networks, schemas_create
from causeway.api.servers.creating.create_devices import Disks
from causeway.api.servers.subresources import metadata
from causeway.api.servers.views import ServerView
from causeway.model import operations
from causeway.model.block_device import BlockDevice
from causeway.model.flavor import Flavor
from causeway.model.host import ServerGroup
from causeway.model.instance import InjectedFile, Instance, KeyPair
from causeway.model.network import RequestedNetwork
from causeway.model.operations import Operation
from causeway.model.states import TaskState, VmState
from causeway.operations.build_run import BuildMemory
from causeway.requests import requesters
from causeway.requests.asking import operation_of
from causeway.requests.of_servers import notify_conductor
from causeway.scheduler.request import Destination, RequestedGroup, RequestSpec
from causeway.store.api import build_requests, groups, journal, keypairs, mappings
from causeway.store.api import cells as cell_records
from causeway.store.database import utcnow

RULE = "os_compute_api:servers:create"
FORCED_HOST = RULE + ":forced_host"
ATTACH_VOLUME = RULE + ":attach_volume"
TRUSTED_CERTS = RULE + ":trusted_certs"
DESTINATION = "compute:servers:create:requested_destination"
# How often a request is counted while others use up the quota.
_ATTEMPTS = 10


@dataclass
class Placement:
    """Where the servers are to go. ``zone``: what the user asked for."""

    zone: str | None = None
    force_host: str | None = None
    destination: Destination | None = None
    hints: dict[str, list[str]] = field(default_factory=dict)
    group: ServerGroup | None = None


@dataclass
class Plan:
    """A create request that passed all checks."""

    server: dict[str, Any]
    flavor: Flavor
    disks: Disks
    networks: list[RequestedNetwork]
    security_groups: list[str]
    keypair: KeyPair | None
    placement: Placement
    files: list[InjectedFile]
    password: str = field(repr=False)
    limits: quota.Known
    wanted: quota.Wanted
    fit: quota.Fit

    @property
    def count(self) -> int:
        return self.fit.count


@handler(body=schemas_create.CREATE, statuses=(202,), answer=answers.CREATE)
def create(request: ApiRequest) -> Response:
    target = {"project_id": request.project_id, "user_id": request.user_id}
    request.authorize(RULE, target)
    plan = _plan(request, target)
    instances, builds = _accept(request, plan)
    for build in builds:
        notify_conductor(request.services, request.context, build)
    if to_bool(plan.server.get("return_reservation_id", False)):
        return Response(202, {"reservation_id": instances[0].reservation_id})
    return _answer(request, plan, instances[0])


def _answer(request: ApiRequest, plan: Plan, instance: Instance) -> Response:
    shown: dict[str, Any] = {
        "id": instance.uuid,
        "links": ServerView(request).links(instance.uuid),
        "OS-DCF:diskConfig": "AUTO" if instance.auto_disk_config else "MANUAL",
        "security_groups": [{"name": name} for name in plan.security_groups],
    }
    shown |= passwords.shown(request, plan.password)
    return Response(202, {"server": shown}, {"Location": request.self_url(f"/servers/{instance.uuid}")})


# --- checks


def _plan(request: ApiRequest, target: dict[str, Any]) -> Plan:
    server = request.body["server"]
    least, most = _counts(server)
    placement = _placement(request, server, target)
    if server.get("trusted_image_certificates"):
        request.authorize(TRUSTED_CERTS, target)
    if server.get("block_device_mapping") or server.get("block_device_mapping_v2"):
        request.authorize(ATTACH_VOLUME, target)
    flavor = flavors_and_images.flavor_for(request, str(server["flavorRef"]))
    if flavor.disabled:
        raise errors.FlavorNotUsable(f"Flavor {flavor.flavorid} could not be found.")
    limits = quota.look_up(request.services, request.project_id, request.user_id, servers=True)
    metadata.check_quota(request, request.project_id, server.get("metadata", {}), limits)
    holds.check(request, request.project_id, {}, server.get("metadata", {}))
    files = personality(request, server, limits)
    keypair = _keypair(request, server)
    disks = create_devices.plan(request, server, flavor, most)
    flavors_and_images.check_hardware(request, flavor, disks.image)
    placement.zone = _zone_of_volumes(request, placement.zone, disks.volume_zones)
    if disks.volume_backed and server.get("trusted_image_certificates"):
        raise errors.BadRequest("Image certificate validation is not supported when booting from volume")
    security_groups = create_networks.security_groups(request, server)
    networks = create_networks.plan(request, server, most)
    wanted = quota.Wanted(request.project_id, request.user_id, flavor, disks.volume_backed, disks.image)
    fit = _within_quota(request, wanted, limits, least, most)
    password = passwords.chosen(request, server)
    plan = Plan(
        server, flavor, disks, networks, security_groups, keypair, placement, files, password, limits, wanted, fit
    )
    if placement.group is not None:
        _check_group_quota(request, plan, len(placement.group.members))
    return plan


def _zone_of_volumes(request: ApiRequest, zone: str | None, of_volumes: set[str]) -> str | None:
    """The server's zone: that of its volumes, unless [cinder] cross_az_attach. Raises BadRequest if zones differ."""
    if request.services.conf.cinder.cross_az_attach or not of_volumes:
        return zone
    shown, problem = ", ".join(sorted(of_volumes)), ""
    if len(of_volumes) > 1:
        problem = f"Volumes are in different availability zones: {shown}"
    elif zone is not None and zone not in of_volumes:
        problem = (
            f"Server and volumes are not in the same availability zone. Server is in: {zone}. Volumes are in: {shown}"
        )
    if problem:
        raise errors.BadRequest(
            f"The availability zone between the server and its attached volumes do not match: {problem}."
        )
    return shown


def _counts(server: dict[str, Any]) -> tuple[int, int]:
    least = int(server.get("min_count", 1))
    most = int(server.get("max_count", least))
    if least > most:
        raise errors.BadRequest("min_count must be <= max_count")
    return least, most


def _within_quota(request: ApiRequest, wanted: quota.Wanted, limits: quota.Known, least: int, most: int) -> quota.Fit:
    """As many servers, at most ``most``, as quota allows. Raises OverQuota if that is less than ``least``."""
    try:
        return quota.check_servers(request.services, wanted, most, limits)
    except errors.OverQuota:
        if least == most:
            raise
        count = max(least, min(most, quota.room_for(request.services, wanted, most, limits)))
        return quota.check_servers(request.services, wanted, count, limits)


def _check_group_quota(request: ApiRequest, plan: Plan, used: int) -> None:
    """``used``: the number of members that the group has."""
    quota.check_count(
        request.services,
        request.project_id,
        "server_group_members",
        "Quota exceeded, too many servers in group",
        used=used,
        more=plan.count,
        user_id=request.user_id,
        known=plan.limits,
    )


def _placement(request: ApiRequest, server: dict[str, Any], target: dict[str, Any]) -> Placement:
    placement = Placement()
    zone = server.get("availability_zone", request.services.conf.default_schedule_zone)
    host, node = server.get("host"), server.get("hypervisor_hostname")
    if zone is not None and ":" in zone:
        zone, forced, *_node = zone.split(":", 2)
        request.authorize(FORCED_HOST, target)
        if host or node:
            raise errors.BadRequest(
                "A host can't be given both in availability_zone and in host or hypervisor_hostname."
            )
        if forced:
            _check_host(request, forced)
            placement.force_host = forced
    if zone:
        if zone not in zones.available(request.services):
            raise errors.BadRequest("The requested availability zone is not available")
        placement.zone = zone
    if host or node:
        request.authorize(DESTINATION, target)
        wanted = str(host or node)
        _check_host(request, wanted)
        placement.destination = Destination(host=wanted, node=node)
    given = request.body.get("os:scheduler_hints") or request.body.get("OS-SCH-HNT:scheduler_hints") or {}
    placement.hints = _hints(given)
    if "group" in placement.hints:
        placement.group = _group(request, placement.hints["group"][0])
    return placement


def _check_host(request: ApiRequest, host: str) -> None:
    try:
        cell_records.cell_of_host(request.services.api, host)
    except errors.HostNotFound as missing:
        raise errors.BadRequest(missing.message) from missing


def _hints(given: dict[str, Any]) -> dict[str, list[str]]:
    """Hints as lists of strings, without those that begin with ``_nova``: users can't set internal ones (bug 2151252)."""
    hints: dict[str, list[str]] = {}
    for name, value in given.items():
        if name.startswith("_nova"):
            continue
        values = value if isinstance(value, list) else [value]
        hints[name] = [each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in values]
    return hints


def _group(request: ApiRequest, uuid: str) -> ServerGroup:
    try:
        group = groups.get(request.services.api, uuid)
    except errors.ServerGroupNotFound as missing:
        raise errors.BadRequest(missing.message) from missing
    if group.project_id != request.project_id and not request.context.is_admin:
        raise errors.BadRequest(f"Instance group {uuid} could not be found.")
    return group


def _keypair(request: ApiRequest, server: dict[str, Any]) -> KeyPair | None:
    name = server.get("key_name")
    if name is None:
        return None
    try:
        return keypairs.get(request.services.api, request.user_id, name)
    except errors.KeyPairNotFound as missing:
        raise errors.BadRequest("Invalid key_name provided.") from missing


def personality(request: ApiRequest, server: dict[str, Any], limits: quota.Known | None = None) -> list[InjectedFile]:
    """The personality files of a create or rebuild request; raises OverQuota. ``limits``: what `quota.look_up` returned."""
    files = [InjectedFile(entry["path"], entry["contents"]) for entry in server.get("personality", [])]
    if files:
        known = limits or quota.look_up(request.services, request.project_id)
        longest = max(len(file.path.encode()) for file in files)
        # base64 takes four characters for three bytes
        largest = max(len(re.sub(r"\s", "", file.contents)) * 3 // 4 for file in files)
        for resource, amount, message in (
            ("injected_files", len(files), "Personality file limit exceeded"),
            ("injected_file_path_bytes", longest, "Personality file path too long"),
            ("injected_file_content_bytes", largest, "Personality file content too long"),
        ):
            quota.check_count(request.services, request.project_id, resource, message, more=amount, known=known)
    return files


# --- writing


def _accept(request: ApiRequest, plan: Plan) -> tuple[list[Instance], list[Operation]]:
    """Writes the servers and the operations that build them. Raises OverQuota if others have used up the quota meanwhile."""
    for _attempt in range(_ATTEMPTS - 1):
        instances = _instances(request, plan)
        with suppress(errors.AcceptedMeanwhile):
            return instances, _write(request, plan, instances)
        plan.limits = quota.look_up(request.services, request.project_id, request.user_id, servers=True)
        plan.fit = _within_quota(request, plan.wanted, plan.limits, *_counts(plan.server))
    instances = _instances(request, plan)
    return instances, _write(request, plan, instances)


def _instances(request: ApiRequest, plan: Plan) -> list[Instance]:
    reservation_id = "r-" + "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(8))
    return [_instance(request, plan, reservation_id, index) for index in range(plan.count)]


def _instance(request: ApiRequest, plan: Plan, reservation_id: str, index: int) -> Instance:
    server, disks = plan.server, plan.disks
    uuid = str(uuids.uuid4())
    suffix = f"-{index + 1}" if plan.count > 1 else ""
    name = server["name"] + suffix
    hostname = server["hostname"] + suffix if "hostname" in server else host_name(name, uuid)
    addresses = access_addresses.changes(server)
    return Instance(
        uuid=uuid,
        project_id=request.project_id,
        user_id=request.user_id,
        display_name=name[:255],
        # Before 2.19 the description was the name.
        display_description=server.get("description") if request.version >= (2, 19) else name[:255],
        hostname=hostname,
        flavor=plan.flavor,
        reservation_id=reservation_id,
        launch_index=index,
        availability_zone=plan.placement.zone,
        pinned_availability_zone=plan.placement.zone,
        vm_state=VmState.BUILDING,
        task_state=TaskState.SCHEDULING,
        image_ref=disks.image.id if disks.image is not None and not disks.volume_backed else "",
        image_meta=disks.image,
        key_name=plan.keypair.name if plan.keypair else None,
        keypairs=[plan.keypair] if plan.keypair else [],
        user_data=server.get("user_data"),
        config_drive=_needs_config_drive(request, plan),
        injected_files=plan.files,
        admin_password=plan.password,
        access_ip_v4=addresses.get("access_ip_v4"),
        access_ip_v6=addresses.get("access_ip_v6"),
        auto_disk_config=server.get("OS-DCF:diskConfig") == "AUTO",
        trusted_image_certificates=server.get("trusted_image_certificates"),
        metadata=dict(server.get("metadata", {})),
        system_metadata={"boot_roles": ",".join(request.context.roles)},
        tags=sorted(set(server.get("tags", []))),
        security_groups=list(plan.security_groups),
        created_at=utcnow(),
    )


def _needs_config_drive(request: ApiRequest, plan: Plan) -> bool:
    """Whether the user, the configuration or the image asks for a config drive."""
    image = plan.disks.image
    if request.services.conf.force_config_drive or to_bool(plan.server.get("config_drive", False)):
        return True
    return image is not None and image.properties.get("img_config_drive") == "mandatory"


def host_name(name: str, uuid: str) -> str:
    """A host name for the guest, made from the server's name as in Nova."""
    text = re.sub(r"[ _.]", "-", name).encode("ascii", "ignore").decode()
    text = re.sub(r"[^\w-]+", "", text).lower().strip("-")[:63].strip("-")
    return text or f"server-{uuid}"


def _write(request: ApiRequest, plan: Plan, instances: list[Instance]) -> list[Operation]:
    """Writes all rows of new servers; returns the operations that build them. Raises AcceptedMeanwhile, OverQuota."""
    services, placement = request.services, plan.placement
    devices = {instance.uuid: plan.disks.for_server(instance.uuid) for instance in instances}
    builds = []
    with services.api.write() as connection:
        for instance in instances:
            builds.append(_write_server_in(connection, request, plan, instance, devices[instance.uuid]))
        if placement.group is not None:
            _join_group_in(connection, request, plan, placement.group, [instance.uuid for instance in instances])
        # Last, because others of the project wait from here on.
        quota.accept_in(services, connection, request.project_id, plan.fit)
    for instance in instances:
        # The record in a cell, whose changes are notified by whoever saves them, is made later.
        services.notifier.instance_update(
            request.context, instance, block_devices_of=lambda server: devices[server.uuid]
        )
    return builds


def _write_server_in(
    connection: sa.Connection, request: ApiRequest, plan: Plan, instance: Instance, devices: list[BlockDevice]
) -> Operation:
    build = operation_of(request.context, instance.uuid, operations.BUILD, BuildMemory())
    created = instance.created_at or utcnow()
    mappings.insert_in(
        connection,
        mappings.InstanceMapping(instance.uuid, instance.project_id, instance.user_id, created),
    )
    mappings.insert_spec_in(connection, instance.uuid, _spec(plan, instance))
    build_requests.insert_in(
        connection,
        build_requests.BuildRequest(
            instance.uuid,
            instance.project_id,
            created,
            instance,
            devices,
            list(plan.networks),
        ),
    )
    kept = requesters.requester_of(request.services.conf, request.context, instance.uuid)
    journal.insert_in(connection, build, requester=kept)
    return build


def _join_group_in(
    connection: sa.Connection, request: ApiRequest, plan: Plan, group: ServerGroup, uuids_of_new: list[str]
) -> None:
    def check(used: int) -> None:
        if quota.rechecks(request.services):
            _check_group_quota(request, plan, used)

    try:
        groups.add_members_in(connection, group, uuids_of_new, check)
    except errors.ServerGroupNotFound as missing:
        raise errors.BadRequest(missing.message) from missing


def _spec(plan: Plan, instance: Instance) -> dict[str, Any]:
    """The request spec to store, with extra keys for the first scheduling only: saving it again discards them."""
    placement, group = plan.placement, plan.placement.group
    spec = RequestSpec(
        instance_uuid=instance.uuid,
        project_id=instance.project_id,
        user_id=instance.user_id,
        flavor=plan.flavor,
        image=plan.disks.image,
        is_volume_backed=plan.disks.volume_backed,
        availability_zone=placement.zone,
        server_group=RequestedGroup(group.uuid, group.policy, dict(group.rules)) if group else None,
        scheduler_hints=placement.hints,
    )
    once: dict[str, Any] = {}
    if placement.force_host is not None:
        once["force_hosts"] = [placement.force_host]
    if placement.destination is not None:
        once["requested_destination"] = msgspec.to_builtins(placement.destination)
    return spec.to_persist() | once

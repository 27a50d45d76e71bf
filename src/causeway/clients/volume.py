"""The block storage service (Block Storage API v3, attachments of 3.44 and later)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import requests

from causeway import errors
from causeway.clients.answers import message_of
from causeway.clients.rights import OF_SERVER, ONLY_USER, SERVICE, CalledAs, named, of_server_with
from causeway.clients.session import Address, ServiceApi, ServiceSessions
from causeway.clients.volume_migrations import VolumeMigrations
from causeway.clients.volume_snapshots import S, VolumeSnapshots, volume_missing
from causeway.context import RequestContext
from causeway.model.volume_keys import VolumeEncryption

# 3.44 completes attachments; 3.60 shows more of volumes (shared_targets). The older one is used if the newer is refused.
MICROVERSION = "3.60"
OLDEST_MICROVERSION = "3.44"
PAGE_SIZE = 1000
FIRST_POLL_SECONDS = 0.1
LONGEST_POLL_SECONDS = 3.0
# A key in the metadata of volumes that are made for servers.
MADE_FOR_SERVER, MADE_FOR_DEVICE = "compute:server", "compute:device"
# States of a volume that is being made.
UNFINISHED = frozenset({"creating", "downloading"})
INTERFACES = {"publicURL": "public", "internalURL": "internal", "adminURL": "admin"}


@dataclass
class Volume:
    """A volume as the service shows it. ``size`` in GiB."""

    id: str
    status: str
    size: int
    name: str = ""
    bootable: bool = False
    multiattach: bool = False
    encrypted: bool = False
    availability_zone: str | None = None
    volume_type: str | None = None
    project_id: str | None = None
    # {"id", "server_id", "attachment_id", "host_name", "device"} each
    attachments: list[dict[str, Any]] = field(default_factory=list)
    image_metadata: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    shared_targets: bool | None = None
    service_uuid: str | None = None
    # Set while the service moves the volume, and shown only to administrators and services.
    migration_status: str | None = None


@dataclass
class Attachment:
    """A use of a volume by a server. ``connection_info`` is empty until there is a connector.

    ``connection_info`` has the form that os-brick and the drivers take: ``driver_volume_type``, ``data`` and ``serial``.
    """

    id: str
    volume_id: str
    instance_uuid: str | None
    status: str
    mode: str | None = None
    connection_info: dict[str, Any] = field(default_factory=dict)

    @property
    def is_connected(self) -> bool:
        return bool(self.connection_info)


Listed = TypeVar("Listed", Attachment, Volume)


class VolumeClient(VolumeMigrations, VolumeSnapshots):
    """Volumes and snapshots that users name, and the volumes and attachments that our records say servers have.

    A service token is added where the service needs one (to delete a connected attachment).
    """

    def __init__(self, sessions: ServiceSessions) -> None:
        options = sessions.conf.cinder
        service_type, _name, interface = options.catalog_info.split(":")
        self._stopping = sessions.stopping
        self._version = MICROVERSION
        self._api = ServiceApi(
            sessions,
            "cinder",
            "volume",
            address=Address(
                service_type,
                [INTERFACES.get(interface, interface)],
                options.os_region_name,
                options.endpoint_template,
            ),
            version_suffix="/v3",
            retries=options.http_retries,
        )

    def forward(self, context: RequestContext, method: str, route: str, what: str, **more: Any) -> Any:
        """Passes a user's call on, only with their token, as `ServiceApi.call`.

        Returns the answer's JSON; None if it is empty.
        """
        answer = self._call(context, method, route, what, called_as=ONLY_USER, **more)
        return answer.json() if answer.content else None

    # Volumes

    def show(self, context: RequestContext, volume_id: str) -> Volume:
        """A volume that a user named. Raises VolumeNotFound."""
        volume = self._show(context, volume_id, named(volume_id))
        context.has_checked(volume_id)
        return volume

    def show_of_server(self, context: RequestContext, volume_id: str) -> Volume:
        """A volume that a server has. Raises VolumeNotFound."""
        return self._show(context, volume_id, OF_SERVER)

    def owner_of(self, volume_id: str) -> str | None:
        """The project of a volume, whoever asks. Raises VolumeNotFound."""
        return self.show_any(volume_id).project_id

    def show_any(self, volume_id: str) -> Volume:
        """A volume of any project. Raises VolumeNotFound."""
        return self._show(None, volume_id, SERVICE)

    def _show(self, context: RequestContext | None, volume_id: str, called_as: CalledAs) -> Volume:
        route, what = "/v3/volumes/{volume_id}", f"show volume {volume_id}"
        answer = self._call(context, "GET", route, what, called_as=called_as, volume_id=volume_id)
        return _volume(answer.json()["volume"])

    def encryption_of(self, context: RequestContext, volume_id: str) -> VolumeEncryption | None:
        """How a volume that a server has is encrypted; None: it is not. Raises VolumeNotFound."""
        route, what = "/v3/volumes/{volume_id}/encryption", f"show the encryption of volume {volume_id}"
        found = self._call(context, "GET", route, what, called_as=OF_SERVER, volume_id=volume_id).json()
        provider = found.get("provider")
        return VolumeEncryption(str(provider), found.get("encryption_key_id") or None) if provider else None

    def is_gone(self, context: RequestContext, volume_id: str) -> bool:
        """Whether a volume that a server has according to our records does not exist in any project."""
        route, what = "/v3/volumes/{volume_id}", f"show volume {volume_id}"
        accept = (400, 404, 406)
        answer = self._call(context, "GET", route, what, called_as=OF_SERVER, volume_id=volume_id, accept=accept)
        return answer.status_code == 404

    def create(
        self,
        context: RequestContext,
        *,
        size: int | None,
        name: str = "",
        image_id: str | None = None,
        snapshot_id: str | None = None,
        volume_type: str | None = None,
        availability_zone: str | None = None,
        description: str = "",
        metadata: Mapping[str, str] | None = None,
    ) -> Volume:
        """Requests a new volume of ``size`` GiB (None: that of its snapshot). It is not ready yet: see `wait_available`.

        It belongs to the project of the requester, so the call is never made with our own credentials. Raises OverQuota,
        InvalidVolume, Unauthorized (the context has no valid token).
        """
        wanted = {
            "size": size,
            "name": name,
            "description": description,
            "imageRef": image_id,
            "snapshot_id": snapshot_id,
            "volume_type": volume_type,
            "availability_zone": availability_zone,
            "metadata": dict(metadata) if metadata else None,
        }
        body = {"volume": {key: value for key, value in wanted.items() if value is not None}}
        what = f"make volume {name!r}" if name else "make a volume"
        answer = self._call(context, "POST", "/v3/volumes", what, called_as=ONLY_USER, body=body)
        return _volume(answer.json()["volume"])

    def made_for(self, context: RequestContext, project_id: str, device_uuid: str) -> list[Volume]:
        """The project's volumes whose metadata says that they were made for a device, read with our own credentials.

        Users can write metadata too, but not that of other projects' volumes.
        """
        query = {"all_tenants": "1", "project_id": project_id, "metadata": repr({MADE_FOR_DEVICE: device_uuid})}
        what = f"list the volumes that were made for device {device_uuid}"
        answer = self._call(context, "GET", "/v3/volumes/detail", what, called_as=SERVICE, query=query)
        found = [_volume(each) for each in answer.json()["volumes"]]
        # A service may be configured to ignore filters.
        return [
            volume
            for volume in found
            if volume.metadata.get(MADE_FOR_DEVICE) == device_uuid and volume.project_id in (None, project_id)
        ]

    def wait_available(
        self, context: RequestContext, volume_id: str, *, timeout: float = 180.0, stop: threading.Event | None = None
    ) -> Volume:
        """Waits until a volume that we made is ``available``, by polling, since the service does not notify. Returns it.

        Raises InvalidVolume if it becomes something else, ServiceFailed after ``timeout`` seconds or when ``stop`` is set.
        """
        volume = self._settled(lambda: self._show(context, volume_id, OF_SERVER), f"Volume {volume_id}", timeout, stop)
        if volume.status != "available":
            raise errors.InvalidVolume(f"Volume {volume_id} did not become available: its status is {volume.status}.")
        return volume

    def _settled(self, look: Callable[[], S], what: str, timeout: float, stop: threading.Event | None = None) -> S:
        """Calls ``look`` until its result's status is not in `UNFINISHED`.

        Returns that result. Raises ServiceFailed after ``timeout``.
        """
        stop = stop or self._stopping
        deadline, pause = time.monotonic() + timeout, FIRST_POLL_SECONDS
        while True:
            seen = look()
            if seen.status not in UNFINISHED:
                return seen
            left = deadline - time.monotonic()
            if left <= 0 or stop.wait(min(pause, left)):
                raise errors.ServiceFailed(
                    f"{what} did not become available within {timeout:g} seconds: it is {seen.status}."
                )
            pause = min(pause * 1.5, LONGEST_POLL_SECONDS)

    def delete(self, context: RequestContext, volume_id: str, *, called_as: CalledAs = OF_SERVER) -> None:
        """Deletes a volume that was made for a server, if it exists. Raises InvalidVolume if it is in use.

        ``called_as``: `named` for a volume that a user named, who must be allowed to delete it.
        """
        route, what = "/v3/volumes/{volume_id}", f"delete volume {volume_id}"
        with suppress(errors.VolumeNotFound):
            self._call(context, "DELETE", route, what, called_as=called_as, volume_id=volume_id)

    def reimage(self, context: RequestContext, volume_id: str, image_id: str) -> None:
        """Has an image that a user named written to a reserved volume of a server, whose content is lost.

        It is not ready yet: see `wait_reimaged`.

        Raises ServiceRefused, also if the volume service is too old for it (3.68).
        """
        self._call(
            context,
            "POST",
            "/v3/volumes/{volume_id}/action",
            f"write image {image_id} to volume {volume_id}",
            body={"os-reimage": {"image_id": image_id, "reimage_reserved": True}},
            called_as=of_server_with(image_id),
            headers={"OpenStack-API-Version": "volume 3.68"},
            accept=(),
            volume_id=volume_id,
        )

    def is_being_filled(self, context: RequestContext, volume_id: str) -> bool:
        """Whether the service is writing to a volume."""
        return self._show(context, volume_id, OF_SERVER).status in UNFINISHED

    def wait_reimaged(self, context: RequestContext, volume_id: str, *, timeout: float) -> None:
        """Waits until the image is written. Raises InvalidVolume if that failed, ServiceFailed after ``timeout`` seconds."""
        volume = self._settled(lambda: self._show(context, volume_id, OF_SERVER), f"Volume {volume_id}", timeout)
        if volume.status != "reserved":
            raise errors.InvalidVolume(
                f"No image could be written to volume {volume_id}: its status is {volume.status}."
            )

    def migration_status(self, context: RequestContext, volume_id: str) -> str | None:
        return self._show(context, volume_id, SERVICE).migration_status

    def reset_to_available(self, context: RequestContext, volume_id: str) -> None:
        """Ends a reservation that no attachment belongs to, as an administrator."""
        self._call(
            context,
            "POST",
            "/v3/volumes/{volume_id}/action",
            f"reset volume {volume_id}",
            called_as=SERVICE,
            body={"os-reset_status": {"status": "available"}},
            repeatable=True,
            volume_id=volume_id,
        )

    # Attachments

    def create_attachment(
        self,
        context: RequestContext,
        volume_id: str,
        instance_uuid: str,
        connector: Mapping[str, Any] | None = None,
        mountpoint: str | None = None,
        mode: str | None = None,
        *,
        called_as: CalledAs,
    ) -> Attachment:
        """Reserves the volume for a server. With a connector, also exports the volume to that host.

        ``called_as``: `named` for a volume that a user named, `OF_SERVER` for one that the server has already, or that was made
        for it. Raises VolumeNotFound, InvalidVolume (another server has it, it is in an error state, ...).
        """
        wanted: dict[str, Any] = {"volume_uuid": volume_id, "instance_uuid": instance_uuid}
        if connector is not None:
            wanted["connector"] = _with_mountpoint(connector, mountpoint)
        if mode is not None:
            wanted["mode"] = mode
        answer = self._call(
            context,
            "POST",
            "/v3/attachments",
            f"reserve volume {volume_id} for instance {instance_uuid}",
            body={"attachment": wanted},
            called_as=called_as,
            missing=volume_missing(volume_id),
        )
        return _attachment(answer.json()["attachment"])

    def update_attachment(
        self,
        context: RequestContext,
        attachment_id: str,
        connector: Mapping[str, Any],
        mountpoint: str | None = None,
        mode: str | None = None,
    ) -> dict[str, Any]:
        """Exports the volume to the connector's host. Returns the connection info.

        Raises VolumeNotFound, RequestRefused (another host has it and it is not multiattach).
        """
        wanted: dict[str, Any] = {"connector": _with_mountpoint(connector, mountpoint)}
        if mode is not None:
            wanted["mode"] = mode
        answer = self._attachment_call(
            context, "PUT", f"connect volume attachment {attachment_id}", attachment_id, body={"attachment": wanted}
        )
        return _attachment(answer.json()["attachment"]).connection_info

    def complete_attachment(self, context: RequestContext, attachment_id: str) -> None:
        """Reports that the guest has the volume. May be repeated."""
        self._call(
            context,
            "POST",
            "/v3/attachments/{attachment_id}/action",
            f"complete volume attachment {attachment_id}",
            called_as=OF_SERVER,
            body={"os-complete": {}},
            repeatable=True,
            missing=_attachment_missing(attachment_id),
            attachment_id=attachment_id,
        )

    def delete_attachment(self, context: RequestContext, attachment_id: str) -> list[Attachment] | None:
        """Deletes an attachment. Returns the volume's other attachments; None if the attachment did not exist."""
        try:
            answer = self._attachment_call(
                context, "DELETE", f"delete volume attachment {attachment_id}", attachment_id, service_token=True
            )
        except errors.VolumeNotFound:
            return None
        return [_attachment(each) for each in answer.json()["attachments"]]

    def get_attachment(self, context: RequestContext, attachment_id: str) -> Attachment:
        """Raises VolumeNotFound."""
        answer = self._attachment_call(context, "GET", f"show volume attachment {attachment_id}", attachment_id)
        return _attachment(answer.json()["attachment"])

    def attachments_of_server(
        self, context: RequestContext, instance_uuid: str, *, volume_id: str | None = None
    ) -> list[Attachment]:
        """All attachments of a server (with ``volume_id``: to this volume) with their connection info, whoever asks.

        With our own credentials: a user's token shows only one project, but administrators move servers of others.
        """
        query = {"instance_id": instance_uuid, "all_tenants": "1"} | ({"volume_id": volume_id} if volume_id else {})
        what = "list volume attachments"
        answer = self._call(context, "GET", "/v3/attachments/detail", what, called_as=SERVICE, query=query)
        return [_attachment(each) for each in answer.json()["attachments"]]

    def attachments_of(self, context: RequestContext, volume_id: str) -> list[Attachment]:
        """All attachments of a volume, whosever they are."""
        query = {"volume_id": volume_id, "all_tenants": "1"}
        what = "list volume attachments"
        answer = self._call(context, "GET", "/v3/attachments/detail", what, called_as=SERVICE, query=query)
        return [_attachment(each) for each in answer.json()["attachments"]]

    def list_all_attachments(self, context: RequestContext) -> list[Attachment]:
        """The attachments of all projects, page by page."""
        return [attachment for page in self.attachment_pages(context) for attachment in page]

    def attachment_pages(self, context: RequestContext) -> Iterator[list[Attachment]]:
        """The same attachments, for those who need not have all of them at once."""
        return self._pages(context, "/v3/attachments/detail", "list volume attachments", "attachments", _attachment)

    def list_all(self, context: RequestContext) -> list[Volume]:
        """The volumes of all projects, page by page."""
        pages = self._pages(context, "/v3/volumes/detail", "list volumes", "volumes", _volume)
        return [volume for page in pages for volume in page]

    def _pages(
        self, context: RequestContext, route: str, what: str, key: str, made: Callable[[Any], Listed]
    ) -> Iterator[list[Listed]]:
        query = {"all_tenants": "1", "limit": str(PAGE_SIZE)}
        while True:
            answer = self._call(context, "GET", route, what, called_as=SERVICE, query=query)
            page = [made(each) for each in answer.json()[key]]
            yield page
            if len(page) < PAGE_SIZE:
                return
            query = {**query, "marker": page[-1].id}

    def _attachment_call(
        self, context: RequestContext, method: str, what: str, attachment_id: str, **more: Any
    ) -> requests.Response:
        return self._call(
            context,
            method,
            "/v3/attachments/{attachment_id}",
            what,
            called_as=OF_SERVER,
            missing=_attachment_missing(attachment_id),
            attachment_id=attachment_id,
            **more,
        )

    def _call(
        self, context: RequestContext | None, method: str, route: str, what: str, **more: Any
    ) -> requests.Response:
        more.setdefault("missing", volume_missing(more["volume_id"]) if "volume_id" in more else None)
        version = self._version
        given = {"headers": {"OpenStack-API-Version": f"volume {version}"}, "accept": (400, 406), **more}
        answer = self._api.call(context, method, route, what, **given)
        if answer.status_code == 406:
            self._version = OLDEST_MICROVERSION
            if version == OLDEST_MICROVERSION:
                raise errors.ServiceRefused(
                    f"The volume service is too old: microversion {OLDEST_MICROVERSION} of its API is needed.",
                    details=message_of(answer),
                )
            return self._call(context, method, route, what, **more)
        if answer.status_code == 400:
            raise errors.InvalidVolume(
                f"The volume service refused to {what}: {message_of(answer)}",
                details=f"{method} {answer.url}: 400",
            )
        return answer


def _with_mountpoint(connector: Mapping[str, Any], mountpoint: str | None) -> dict[str, Any]:
    return {**connector, "mountpoint": mountpoint} if mountpoint else dict(connector)


def _attachment_missing(attachment_id: str) -> errors.VolumeNotFound:
    return errors.VolumeNotFound(f"Volume attachment {attachment_id} could not be found.")


def _volume(document: Mapping[str, Any]) -> Volume:
    return Volume(
        id=document["id"],
        status=document["status"],
        size=document["size"],
        name=document.get("name") or "",
        bootable=str(document.get("bootable", "false")).lower() == "true",
        multiattach=bool(document.get("multiattach")),
        encrypted=bool(document.get("encrypted")),
        availability_zone=document.get("availability_zone"),
        volume_type=document.get("volume_type"),
        project_id=document.get("os-vol-tenant-attr:tenant_id"),
        attachments=list(document.get("attachments") or []),
        image_metadata=dict(document.get("volume_image_metadata") or {}),
        metadata=dict(document.get("metadata") or {}),
        shared_targets=document.get("shared_targets"),
        service_uuid=document.get("service_uuid"),
        migration_status=document.get("migration_status") or document.get("os-vol-mig-status-attr:migstat"),
    )


def _attachment(document: Mapping[str, Any]) -> Attachment:
    return Attachment(
        id=document["id"],
        volume_id=document["volume_id"],
        instance_uuid=document.get("instance"),
        status=document["status"],
        mode=document.get("attach_mode"),
        connection_info=_connection_info(document.get("connection_info") or {}, document["volume_id"]),
    )


def _connection_info(given: Mapping[str, Any], volume_id: str) -> dict[str, Any]:
    """Converts connection data: the service shows it flat, drivers and os-brick need it below ``data``."""
    if not given:
        return {}
    data = given.get("data")
    if not isinstance(data, dict):
        data = {key: value for key, value in given.items() if key != "driver_volume_type"}
    return {"driver_volume_type": given.get("driver_volume_type"), "data": data, "serial": volume_id}

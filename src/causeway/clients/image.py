"""The image service (Image API v2)."""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import requests

from causeway import durable, errors
from causeway.clients.rights import OF_SERVER, ONLY_USER, SERVICE, About, CalledAs, named
from causeway.clients.session import ServiceApi, ServiceSessions
from causeway.context import RequestContext
from causeway.model.image import ImageMeta

LOG = logging.getLogger(__name__)

Progress = Callable[[int, int], None]

UPLOAD_CHUNK_BYTES = 1 << 20
# Also the size of the blocks of zeros that become holes of the file.
DOWNLOAD_CHUNK_BYTES = 256 << 10
ZEROS = bytes(DOWNLOAD_CHUNK_BYTES)
PAGE_SIZE = 200

# All other fields of an image are its properties.
STANDARD_KEYS = frozenset(
    (
        *("id", "name", "status", "visibility", "owner", "protected", "os_hidden", "disk_format", "container_format"),
        *("min_disk", "min_ram", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value", "created_at"),
        *("updated_at", "tags", "self", "file", "schema", "direct_url", "locations", "stores"),
    )
)


class ImageClient:
    """Images belong to users, who name them; those that are made of servers and for their moves are found in our records."""

    def __init__(self, sessions: ServiceSessions) -> None:
        options = sessions.conf.glance
        self._api = ServiceApi(sessions, "glance", "image", version_suffix="/v2", retries=options.num_retries)

    def show(self, context: RequestContext, image_id: str) -> ImageMeta:
        """An image that a user named. Raises ImageNotFound."""
        image = self._show(context, image_id, named(image_id))
        context.has_checked(image_id)
        return image

    def show_of_server(self, context: RequestContext, image_id: str, *, called_as: CalledAs = OF_SERVER) -> ImageMeta:
        """An image that a server was made from according to our records, or that we made. Raises ImageNotFound."""
        return self._show(context, image_id, called_as)

    def _show(self, context: RequestContext, image_id: str, called_as: CalledAs) -> ImageMeta:
        route, what = "/v2/images/{image_id}", f"show image {image_id}"
        answer = self._api.call(
            context, "GET", route, what, called_as=called_as, missing=not_found(image_id), image_id=image_id
        )
        return image_meta(answer.json())

    def forward(self, context: RequestContext, method: str, route: str, what: str, **more: Any) -> Any:
        """Passes a user's call on, only with their token, as `ServiceApi.call`.

        Returns the answer's JSON; None if it is empty.
        """
        answer = self._api.call(context, method, route, what, called_as=ONLY_USER, **more)
        return answer.json() if answer.content else None

    def list_all(self, filters: Mapping[str, str]) -> list[ImageMeta]:
        """The images of all projects that match filters of the Image API (name, status, a property, ...)."""
        return self._list(None, SERVICE, lambda _as_service: filters)

    def list_of(self, context: RequestContext, project_id: str, filters: Mapping[str, str]) -> list[ImageMeta]:
        """The images that the user sees and that match; those of their project if their token has expired during the work."""
        return self._list(
            context, named(project_id), lambda as_service: {**filters, "owner": project_id} if as_service else filters
        )

    def _list(
        self, context: RequestContext | None, called_as: CalledAs, filters: Callable[[bool], Mapping[str, str]]
    ) -> list[ImageMeta]:
        found: list[ImageMeta] = []
        page_of: dict[str, str | int] = {"limit": PAGE_SIZE}
        while True:
            page = self._api.call(
                context,
                "GET",
                "/v2/images",
                "list images",
                called_as=called_as,
                query=lambda as_service: {**page_of, **filters(as_service)},
            ).json()
            found.extend(image_meta(each) for each in page["images"])
            if "next" not in page or not page["images"]:
                return found
            page_of["marker"] = found[-1].id

    def create(
        self,
        context: RequestContext,
        *,
        name: str,
        properties: Mapping[str, Any] | None = None,
        image_id: str | None = None,
        visibility: str = "private",
        disk_format: str | None = None,
        container_format: str | None = None,
        min_disk: int = 0,
        min_ram: int = 0,
        owner: str | None = None,
        called_as: CalledAs = ONLY_USER,
    ) -> ImageMeta:
        """Makes an image's record with status ``queued``. min_disk in GiB, min_ram in MiB.

        Only the user can make one for themselves. ``called_as``: `OF_SERVER` for one that accepted work needs, `SERVICE` for one
        that belongs to our own project, so that no user can read, write or delete it.

        With ``image_id`` the call may be repeated: an existing image of that id is returned. Properties that are None are left
        out. ``owner``: a project; by default that of the context, also when our own credentials are used. Raises ServiceRefused
        if an image that should be ours is somebody else's.
        """
        wanted: dict[str, Any] = {
            **{key: str(value) for key, value in (properties or {}).items() if value is not None},
            "name": name,
            "visibility": visibility,
            "min_disk": min_disk,
            "min_ram": min_ram,
        }
        given = {"id": image_id, "disk_format": disk_format, "container_format": container_format, "owner": owner}
        wanted.update({key: value for key, value in given.items() if value is not None})

        is_ours = called_as.about is About.OURS

        def body(as_service: bool) -> dict[str, Any]:
            if as_service and owner is None and context.project_id is not None and not is_ours:
                return {**wanted, "owner": context.project_id}
            return wanted

        answer = self._api.call(
            context,
            "POST",
            "/v2/images",
            f"make image {name}",
            called_as=called_as,
            body=body,
            accept=(409,) if image_id is not None else (),
            repeatable=image_id is not None,
        )
        if answer.status_code == 409 and image_id is not None:
            present = self._show(context, image_id, called_as)
            if is_ours and present.owner != self._api.own_project:
                raise errors.ServiceRefused(
                    f"Image {image_id} can't be made: somebody else has made one with this id.",
                    details=f"it belongs to project {present.owner}",
                )
            return present
        return image_meta(answer.json())

    def set_properties(self, context: RequestContext, image_id: str, properties: Mapping[str, str]) -> None:
        """Adds properties to an image that we made, or changes them. Raises ImageNotFound."""
        self._api.call(
            context,
            "PATCH",
            "/v2/images/{image_id}",
            f"set properties of image {image_id}",
            called_as=OF_SERVER,
            body=[{"op": "add", "path": f"/{name}", "value": value} for name, value in properties.items()],
            headers={"Content-Type": "application/openstack-images-v2.1-json-patch"},
            missing=not_found(image_id),
            repeatable=True,
            image_id=image_id,
        )

    def upload(
        self,
        context: RequestContext,
        image_id: str,
        file: Path,
        size: int | None = None,
        progress: Progress | None = None,
    ) -> str:
        """Sends a file's first ``size`` bytes (all by default) as the image's data. Returns their SHA-256.

        ``progress`` gets (bytes done, bytes total) after every MiB. Raises ServiceFailed if the connection breaks (the
        image is ``queued`` again then), ServiceRefused if the image has its data already.
        """
        total = file.stat().st_size if size is None else size

        digest = hashlib.sha256()

        def chunks() -> Iterator[bytes]:
            nonlocal digest
            # From the beginning, also when the data is sent again.
            digest = hashlib.sha256()
            with file.open("rb") as source:
                for chunk in _chunks(source, total, progress):
                    digest.update(chunk)
                    yield chunk

        self.stream(context, image_id, chunks, total)
        return digest.hexdigest()

    def stream(
        self, context: RequestContext, image_id: str, data: Callable[[], Iterable[bytes]], size: int | None = None
    ) -> None:
        """Sends the image's data. ``data`` is called again if the data must be sent again. ``size``: None if unknown.

        Raises what ``data`` raises, ServiceFailed if the connection breaks (in both cases the image is ``queued`` again), and
        ServiceRefused if the image has its data already.
        """
        headers = {"Content-Type": "application/octet-stream"}
        if size is not None:
            headers["Content-Length"] = str(size)
        self._api.call(
            context,
            "PUT",
            "/v2/images/{image_id}/file",
            f"take the data of image {image_id}",
            called_as=OF_SERVER,
            data=data,
            headers=headers,
            missing=not_found(image_id),
            image_id=image_id,
        )

    def download(
        self,
        context: RequestContext,
        image_id: str,
        destination: Path,
        progress: Progress | None = None,
        image: ImageMeta | None = None,
    ) -> ImageMeta:
        """Writes the image's data to ``destination``, which appears only when size and checksum are right.

        For an image of a server: one that a user named was checked before it came into the server's record. Blocks of zeros
        become holes. ``image``: the record, if the caller has it. ``progress``: (bytes done, bytes total). Raises ImageNotFound,
        ServiceRefused (the image has no data), ServiceFailed (the connection broke, or the bytes are not the image's); then no
        file is left.
        """
        image = image or self.show_of_server(context, image_id)
        answer = self._api.call(
            context,
            "GET",
            "/v2/images/{image_id}/file",
            f"give the data of image {image_id}",
            called_as=OF_SERVER,
            headers={"Accept": "*/*", "Accept-Encoding": "identity"},
            missing=not_found(image_id),
            stream=True,
            image_id=image_id,
        )
        partial = destination.with_name(f".{destination.name}.{secrets.token_hex(4)}.partial")
        try:
            if answer.status_code == 204:
                raise errors.ServiceRefused(f"Image {image_id} has no data: its status is {image.status}.")
            _receive(answer, image, partial, progress)
            durable.settle(partial, destination)
        finally:
            answer.close()
            partial.unlink(missing_ok=True)
        return image

    def locations(self, context: RequestContext, image_id: str) -> list[str]:
        """Where the service keeps the data of an image of a server, as URLs. Users may not know.

        Raises ImageNotFound, also if the service is too old to be asked.
        """
        answer = self._api.call(
            context,
            "GET",
            "/v2/images/{image_id}/locations",
            f"say where image {image_id} is kept",
            called_as=SERVICE,
            missing=not_found(image_id),
            image_id=image_id,
        )
        return [str(each["url"]) for each in answer.json() if each.get("url")]

    def add_location(self, context: RequestContext, image_id: str, location: str) -> None:
        """Says to the service where the data of an image is that we made for a server. It has none yet, and has it soon after.

        Raises ImageNotFound, Forbidden and ServiceRefused if the service does not accept it.
        """
        self._api.call(
            context,
            "POST",
            "/v2/images/{image_id}/locations",
            f"accept where image {image_id} is kept",
            called_as=SERVICE,
            body={"url": location, "validation_data": {}},
            missing=not_found(image_id),
            image_id=image_id,
        )

    def delete(self, context: RequestContext, image_id: str, *, called_as: CalledAs = OF_SERVER) -> None:
        """Deletes an image that we made for a server, if it exists."""
        with suppress(errors.ImageNotFound):
            self._api.call(
                context,
                "DELETE",
                "/v2/images/{image_id}",
                f"delete image {image_id}",
                called_as=called_as,
                missing=not_found(image_id),
                image_id=image_id,
            )


def not_found(image_id: str) -> errors.ImageNotFound:
    return errors.ImageNotFound(f"Image {image_id} could not be found.")


def image_meta(document: Mapping[str, Any]) -> ImageMeta:
    """Converts an image of the Image API."""
    return ImageMeta(
        id=document["id"],
        name=document.get("name") or "",
        status=document.get("status") or "queued",
        disk_format=document.get("disk_format"),
        container_format=document.get("container_format"),
        size=document.get("size") or 0,
        virtual_size=document.get("virtual_size"),
        min_ram=document.get("min_ram") or 0,
        min_disk=document.get("min_disk") or 0,
        checksum=document.get("checksum"),
        os_hash_algo=document.get("os_hash_algo"),
        os_hash_value=document.get("os_hash_value"),
        owner=document.get("owner"),
        visibility=document.get("visibility") or "private",
        properties={key: value for key, value in document.items() if key not in STANDARD_KEYS},
    )


def _chunks(source: BinaryIO, total: int, progress: Progress | None) -> Iterator[bytes]:
    done = 0
    while done < total:
        chunk = source.read(min(UPLOAD_CHUNK_BYTES, total - done))
        if not chunk:
            raise OSError(f"the file ended after {done} of {total} bytes")
        yield chunk
        done += len(chunk)
        if progress is not None:
            progress(done, total)


def _receive(answer: requests.Response, image: ImageMeta, path: Path, progress: Progress | None) -> None:
    algorithm, expected = _checksum_of(image)
    digest = hashlib.new(algorithm, usedforsecurity=False) if algorithm else None
    done = 0
    with path.open("wb") as file:
        try:
            for chunk in answer.iter_content(DOWNLOAD_CHUNK_BYTES):
                if image.size and done + len(chunk) > image.size:
                    # At once: whoever wrote the image must not fill the disk before its digest is compared.
                    raise errors.ServiceFailed(
                        f"Image {image.id} has {image.size} bytes, but more came. Try again later."
                    )
                if digest is not None:
                    digest.update(chunk)
                if chunk == (ZEROS if len(chunk) == len(ZEROS) else ZEROS[: len(chunk)]):
                    file.seek(len(chunk), os.SEEK_CUR)
                else:
                    file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done, image.size)
        except requests.RequestException as error:
            raise errors.ServiceFailed(
                f"The image service stopped after {done} of {image.size} bytes of image {image.id}. Try again later.",
                details=f"{type(error).__name__}: {error}",
            ) from error
        # If the file ends with a hole, this sets its length.
        file.truncate(done)
    if image.size and done != image.size:
        raise errors.ServiceFailed(f"Image {image.id} has {image.size} bytes, but {done} came. Try again later.")
    if digest is not None and digest.hexdigest() != expected:
        raise errors.ServiceFailed(
            f"The data of image {image.id} is damaged: its {algorithm} checksum is not the one of the image. Try again"
            " later.",
            details=f"expected {expected}, received {digest.hexdigest()}",
        )


def _checksum_of(image: ImageMeta) -> tuple[str | None, str | None]:
    if image.os_hash_value and image.os_hash_algo in hashlib.algorithms_available:
        return image.os_hash_algo, image.os_hash_value
    if image.checksum:
        return "md5", image.checksum
    LOG.warning("image %s has no checksum that we know; its data is not verified", image.id)
    return None, None

"""The data of images: hashed and stored on upload, served whole or in part."""

import hashlib
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from causeway import durable
from causeway.devcloud.cloud import Cloud
from causeway.devcloud.errors import ApiError, bad_request, conflict, forbidden
from causeway.devcloud.image import views
from causeway.devcloud.image.inspect import virtual_size
from causeway.devcloud.tables.base import now
from causeway.devcloud.tables.image import Image
from causeway.devcloud.web import Call

LOG = logging.getLogger(__name__)

CHUNK = 1 << 20


def path_of(cloud: Cloud, image_id: str) -> Path:
    return cloud.images_dir / image_id


def upload(call: Call, image_id: str) -> None:
    """Receives the data. A broken upload leaves the image queued, without data, as in the Image service."""
    store = call.cloud.store
    if not (call.request.content_type or "").startswith("application/octet-stream"):
        raise ApiError(415, "The content type must be application/octet-stream.")
    with store.transaction():
        row = views.find_own(call, image_id)
        if row.status != "queued":
            raise conflict(f"Image status transition from {row.status} to saving is not allowed")
        if not row.disk_format or not row.container_format:
            raise bad_request("Properties disk_format, container_format must be set prior to saving data.")
        row.status = "saving"
        disk_format = row.disk_format
    partial = path_of(call.cloud, image_id).with_suffix(".partial")
    try:
        size, checksum, digest = _receive(_body_stream(call), partial, call.request.content_length)
        virtual = virtual_size(partial, disk_format)
        durable.sync(partial)
    except BaseException:
        partial.unlink(missing_ok=True)
        _set_queued(call, image_id)
        raise
    with store.transaction() as session:
        saved = session.get(Image, image_id)
        if saved is None:
            partial.unlink()
            raise ApiError(410, f"Image {image_id} was deleted while its data was uploaded.")
        durable.rename(partial, path_of(call.cloud, image_id))
        saved.status, saved.size, saved.virtual_size, saved.updated_at = "active", size, virtual, now()
        saved.checksum, saved.os_hash_algo, saved.os_hash_value = checksum, "sha512", digest


def _body_stream(call: Call) -> Any:
    return call.request.stream if call.request.content_length is None else call.request.bounded_stream


def _receive(stream: Any, path: Path, expected: int | None) -> tuple[int, str, str]:
    md5, sha512, size = hashlib.md5(usedforsecurity=False), hashlib.sha512(), 0
    try:
        with path.open("wb") as file:
            while chunk := stream.read(CHUNK):
                file.write(chunk)
                md5.update(chunk)
                sha512.update(chunk)
                size += len(chunk)
    except (OSError, ValueError) as error:
        LOG.warning("upload to %s broke after %d bytes: %s", path.stem, size, error)
        raise bad_request(f"The upload broke after {size} bytes.") from error
    if expected is not None and size != expected:
        raise bad_request(f"The upload ended after {size} of {expected} bytes.")
    return size, md5.hexdigest(), sha512.hexdigest()


def _set_queued(call: Call, image_id: str) -> None:
    with call.cloud.store.transaction() as session:
        row = session.get(Image, image_id)
        if row is not None and row.status == "saving":
            row.status = "queued"


def discard_broken_uploads(cloud: Cloud) -> None:
    """Deletes the data of uploads that were under way when devcloud ended. Their images stay "saving", as in Glance."""
    for partial in cloud.images_dir.glob("*.partial"):
        partial.unlink()


def download(call: Call, image_id: str) -> None:
    with call.cloud.store.transaction():
        row = views.find(call, image_id)
        if row.status == "deactivated" and not call.caller.is_admin:
            raise forbidden("The requested image has been deactivated. Image data download is forbidden.")
        active, size, checksum = row.status in ("active", "deactivated"), row.size or 0, row.checksum
    response = call.response
    if not active:
        response.status = "204 No Content"
        return
    try:
        file = path_of(call.cloud, image_id).open("rb")
    except FileNotFoundError as error:
        raise ApiError(404, f"Image {image_id} has no data any more.") from error
    start, end = _wanted_range(call.request.get_header("Range"), size)
    response.content_type = "application/octet-stream"
    response.set_header("Accept-Ranges", "bytes")
    if (start, end) != (0, size):
        response.status = "206 Partial Content"
        response.set_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
    elif checksum:
        response.set_header("Content-MD5", checksum)
    response.content_length = end - start
    file.seek(start)
    response.stream = _Reader(file, end - start)


def list_locations(call: Call, image_id: str) -> list[Any]:
    """Where the data is; only services and administrators may know."""
    row = views.find(call, image_id)
    call.require_privileged()
    has_data = row.status in ("active", "deactivated")
    return [{"url": path_of(call.cloud, image_id).as_uri(), "metadata": {}}] if has_data else []


def add_location(call: Call, image_id: str) -> list[Any]:
    """Makes data that is in the service's own storage already that of an image. Nobody has seen it, so it has no checksum."""
    row = views.find(call, image_id)
    call.require_privileged()
    if row.status != "queued":
        raise conflict(f"It's not allowed to add locations if image status is {row.status}.")
    path, url = path_of(call.cloud, image_id), call.body().get("url")
    if Path(urlsplit(str(url)).path).resolve() != path.resolve() or not path.is_file():
        raise bad_request(f"Invalid location: {url}")
    row.status, row.size, row.updated_at = "active", path.stat().st_size, now()
    row.virtual_size = virtual_size(path, row.disk_format or "")
    return [{"url": url, "metadata": {}}]


class _Reader:
    """The part of a file that is served. The WSGI server closes it at the end of the response, however that ends."""

    def __init__(self, file: BinaryIO, length: int) -> None:
        self._file = file
        self._left = length

    def __iter__(self) -> Iterator[bytes]:
        while self._left > 0 and (chunk := self._file.read(min(CHUNK, self._left))):
            self._left -= len(chunk)
            yield chunk

    def close(self) -> None:
        self._file.close()


def _wanted_range(header: str | None, size: int) -> tuple[int, int]:
    if header is None:
        return 0, size
    match = re.fullmatch(r"bytes=([0-9]{0,18})-([0-9]{0,18})", header.strip())
    if match is None or match.group(0) == "bytes=-":
        raise ApiError(416, f"Unsupported range: {header}")
    first, last = match.groups()
    if not first:
        start, end = max(size - int(last), 0), size
    else:
        start, end = int(first), min(int(last) + 1, size) if last else size
    if start >= end:
        raise ApiError(416, f"The range {header} is not within the {size} bytes of the image.")
    return start, end

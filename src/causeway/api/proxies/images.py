"""``/images`` (until 2.35) and ``/images/{id}/metadata`` (until 2.38). Source: Compute API reference, "Images" (deprecated)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from causeway import errors
from causeway.api.answers import proxies as answers
from causeway.api.answers import server_parts
from causeway.api.answers.parts import EMPTY
from causeway.api.proxies.forward import ask
from causeway.api.quotas import quota
from causeway.api.request import ApiRequest, Response, VersionedSchemas, handler
from causeway.api.schemas import common
from causeway.api.validation import is_uuid
from causeway.clients.image import STANDARD_KEYS

IMAGES, IMAGE = "/v2/images", "/v2/images/{image_id}"
PATCH = {"Content-Type": "application/openstack-images-v2.1-json-patch"}
# status of the image service -> (status, progress) here
STATUSES = {
    "queued": ("SAVING", 25),
    "saving": ("SAVING", 50),
    "importing": ("SAVING", 50),
    "active": ("ACTIVE", 100),
    "killed": ("ERROR", 0),
    "deleted": ("DELETED", 0),
    "pending_delete": ("DELETED", 0),
}
_METADATA: VersionedSchemas = [(1, 38, common.body("metadata", common.METADATA))]
_ITEM: VersionedSchemas = [(1, 38, common.body("meta", common.METADATA | {"minProperties": 1, "maxProperties": 1}))]


_POSITIVE = common.many(common.NUMBER | {"minimum": 1})
_LIST: VersionedSchemas = [(1, 35, common.query(dict.fromkeys(("limit", "page_size", "offset"), _POSITIVE)))]


def _get(request: ApiRequest, image_id: str) -> dict[str, Any]:
    missing = errors.ImageNotFound(f"Image {image_id} could not be found.")
    if not is_uuid(image_id):
        raise missing
    found: dict[str, Any] = ask(
        request,
        request.services.images,
        "GET",
        IMAGE,
        f"show image {image_id}",
        missing=missing,
        image_id=image_id,
    )
    return found


def metadata_of(image: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value) for key, value in image.items() if key not in STANDARD_KEYS and value is not None}


def _links(request: ApiRequest, image_id: str) -> list[dict[str, str]]:
    root = (request.services.conf.api.glance_link_prefix or request.link_root(versioned=False)).rstrip("/")
    return [
        {"rel": "self", "href": request.self_url(f"/images/{image_id}")},
        {"rel": "bookmark", "href": f"{root}/images/{image_id}"},
        {"rel": "alternate", "type": "application/vnd.openstack.image", "href": f"{root}/images/{image_id}"},
    ]


def _brief(request: ApiRequest, image: dict[str, Any]) -> dict[str, Any]:
    return {"id": image["id"], "name": image["name"], "links": _links(request, image["id"])}


def _detail(request: ApiRequest, image: dict[str, Any]) -> dict[str, Any]:
    status, progress = STATUSES.get(image["status"], ("UNKNOWN", 0))
    metadata = metadata_of(image)
    shown = _brief(request, image) | {
        "status": status,
        "progress": progress,
        "minDisk": image["min_disk"],
        "minRam": image["min_ram"],
        "created": image["created_at"],
        "updated": image["updated_at"],
        "metadata": metadata,
        "OS-EXT-IMG-SIZE:size": image["size"],
    }
    if "auto_disk_config" in metadata:
        shown["OS-DCF:diskConfig"] = "AUTO" if common.to_bool(metadata["auto_disk_config"]) else "MANUAL"
    server_id = metadata.get("instance_uuid")
    if server_id:
        shown["server"] = {
            "id": server_id,
            "links": [
                {"rel": "self", "href": request.self_url(f"/servers/{server_id}")},
                {"rel": "bookmark", "href": f"{request.link_root(versioned=False)}/servers/{server_id}"},
            ],
        }
    return shown


def _filters(request: ApiRequest) -> dict[str, str]:
    """The filters in the image service's terms; unknown ones are ignored."""
    found: dict[str, str] = {}
    for name, values in request.query.items():
        value = values[-1]
        if name == "name":
            found["name"] = value
        elif name == "status":
            found["status"] = next((theirs for theirs, (ours, _) in STATUSES.items() if ours == value.upper()), value)
            if value.upper() == "SAVING":
                found["status"] = "in:queued,saving,importing"
        elif name == "changes-since":
            found["updated_at"] = f"gte:{value}"
        elif name == "server":
            found["instance_uuid"] = value.rstrip("/").rpartition("/")[2]
        elif name == "type":
            found["image_type"] = value
        elif name in ("minRam", "minDisk"):
            found[{"minRam": "min_ram", "minDisk": "min_disk"}[name]] = value
        elif name.startswith("property-"):
            found[name.removeprefix("property-")] = value
    return found


def _list(request: ApiRequest) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """A page, and its links."""
    limit = request.param("limit")
    most = min(int(limit or 1000), int(request.services.conf.api.max_limit))
    found: list[dict[str, Any]] = []
    query: dict[str, Any] = _filters(request) | {"sort_key": "created_at", "sort_dir": "desc"}
    marker = request.param("marker")
    while len(found) < most:
        wanted = query | {"limit": most - len(found)} | ({"marker": marker} if marker else {})
        page = ask(request, request.services.images, "GET", IMAGES, "list images", query=wanted)
        found += page["images"]
        if "next" not in page or not page["images"]:
            break
        marker = found[-1]["id"]
    links = []
    if limit and len(found) == most:
        parameters = [(name, value) for name, values in request.query.items() if name != "marker" for value in values]
        path = request.path[request.path.find("/images") :]
        links = [{"rel": "next", "href": request.self_url(path, [*parameters, ("marker", found[-1]["id"])])}]
    return found, links


def _answer(images: list[dict[str, Any]], links: list[dict[str, str]]) -> Response:
    return Response(200, {"images": images} | ({"images_links": links} if links else {}))


@handler(query=_LIST, answer=answers.IMAGES)
def index(request: ApiRequest) -> Response:
    found, links = _list(request)
    return _answer([_brief(request, image) for image in found], links)


@handler(query=_LIST, answer=answers.IMAGES_DETAIL)
def detail(request: ApiRequest) -> Response:
    found, links = _list(request)
    return _answer([_detail(request, image) for image in found], links)


@handler(answer=answers.IMAGE)
def show(request: ApiRequest, image_id: str) -> Response:
    return Response(200, {"image": _detail(request, _get(request, image_id))})


@handler(statuses=(204,), answer=EMPTY)
def delete(request: ApiRequest, image_id: str) -> Response:
    _get(request, image_id)
    ask(request, request.services.images, "DELETE", IMAGE, f"delete image {image_id}", image_id=image_id)
    return Response(204)


# metadata


def _replace(request: ApiRequest, image: dict[str, Any], wanted: dict[str, str]) -> dict[str, str]:
    present = metadata_of(image)
    quota.check_count(
        request.services, request.project_id, "metadata_items", "Image metadata limit exceeded", more=len(wanted)
    )

    def pointer(key: str) -> str:
        return "/" + key.replace("~", "~0").replace("/", "~1")

    changes: list[dict[str, str]] = [
        {"op": "replace" if key in present else "add", "path": pointer(key), "value": value}
        for key, value in wanted.items()
        if present.get(key) != value
    ]
    changes += [{"op": "remove", "path": pointer(key)} for key in present if key not in wanted]
    if changes:
        image = ask(
            request,
            request.services.images,
            "PATCH",
            IMAGE,
            f"change image {image['id']}",
            body=changes,
            headers=PATCH,
            image_id=image["id"],
        )
    return metadata_of(image)


@handler(answer=server_parts.METADATA)
def metadata_index(request: ApiRequest, image_id: str) -> Response:
    return Response(200, {"metadata": metadata_of(_get(request, image_id))})


@handler(body=_METADATA, answer=server_parts.METADATA)
def metadata_update(request: ApiRequest, image_id: str) -> Response:
    image = _get(request, image_id)
    wanted = metadata_of(image) | request.body["metadata"]
    return Response(200, {"metadata": _replace(request, image, wanted)})


@handler(body=_METADATA, answer=server_parts.METADATA)
def metadata_replace(request: ApiRequest, image_id: str) -> Response:
    image = _get(request, image_id)
    return Response(200, {"metadata": _replace(request, image, request.body["metadata"])})


@handler(answer=server_parts.META)
def metadata_show(request: ApiRequest, image_id: str, key: str) -> Response:
    metadata = metadata_of(_get(request, image_id))
    if key not in metadata:
        raise errors.NotFound("Metadata item was not found")
    return Response(200, {"meta": {key: metadata[key]}})


@handler(body=_ITEM, answer=server_parts.META)
def metadata_set(request: ApiRequest, image_id: str, key: str) -> Response:
    if key not in request.body["meta"]:
        raise errors.BadRequest("Request body and URI mismatch")
    image = _get(request, image_id)
    _replace(request, image, metadata_of(image) | request.body["meta"])
    return Response(200, request.body)


@handler(statuses=(204,), answer=EMPTY)
def metadata_delete(request: ApiRequest, image_id: str, key: str) -> Response:
    image = _get(request, image_id)
    metadata = metadata_of(image)
    if key not in metadata:
        raise errors.NotFound("Invalid metadata key")
    del metadata[key]
    _replace(request, image, metadata)
    return Response(204)

"""Version and schema documents, and documents that clients read before an upload."""

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import not_found
from causeway.devcloud.image.images import CONTAINER_FORMATS, DISK_FORMATS
from causeway.devcloud.image.views import VISIBILITIES
from causeway.devcloud.web import Call, links_root

TEXT: Json = {"type": ["null", "string"]}
IMAGE: Json = {
    "name": "image",
    "properties": {
        "id": {"type": "string"},
        "name": {"type": ["null", "string"], "maxLength": 255},
        "status": {"type": "string", "readOnly": True},
        "visibility": {"type": "string", "enum": list(VISIBILITIES)},
        "owner": TEXT,
        "protected": {"type": "boolean"},
        "os_hidden": {"type": "boolean"},
        "disk_format": {"type": ["null", "string"], "enum": [None, *DISK_FORMATS]},
        "container_format": {"type": ["null", "string"], "enum": [None, *CONTAINER_FORMATS]},
        "min_disk": {"type": "integer"},
        "min_ram": {"type": "integer"},
        "size": {"type": ["null", "integer"], "readOnly": True},
        "virtual_size": {"type": ["null", "integer"], "readOnly": True},
        "checksum": {**TEXT, "readOnly": True},
        "os_hash_algo": {**TEXT, "readOnly": True},
        "os_hash_value": {**TEXT, "readOnly": True},
        "created_at": {"type": "string", "readOnly": True},
        "updated_at": {"type": "string", "readOnly": True},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 255}},
        "self": {"type": "string", "readOnly": True},
        "file": {"type": "string", "readOnly": True},
        "schema": {"type": "string", "readOnly": True},
    },
    "additionalProperties": {"type": "string"},
    "links": [
        {"rel": "self", "href": "{self}"},
        {"rel": "enclosure", "href": "{file}"},
        {"rel": "describedby", "href": "{schema}"},
    ],
}
MEMBER: Json = {
    "name": "member",
    "properties": {
        name: {"type": "string"} for name in ("image_id", "member_id", "status", "created_at", "updated_at", "schema")
    },
}


def collection(name: str, key: str, item: Json) -> Json:
    """The schema of a list: its name, the key of its items, and their schema."""
    return {"name": name, "properties": {key: {"type": "array", "items": item}, "schema": {"type": "string"}}}


SCHEMAS: dict[str, Json] = {
    "image": IMAGE,
    "images": collection("images", "images", IMAGE),
    "member": MEMBER,
    "members": collection("members", "members", MEMBER),
}


def show_schema(_call: Call, name: str) -> Json:
    if name not in SCHEMAS:
        raise not_found(f"There is no schema {name}.")
    return SCHEMAS[name]


def show_import(_call: Call) -> Json:
    return {"import-methods": {"description": "Import methods available.", "type": "array", "value": []}}


def show_stores(_call: Call) -> Json:
    return {"stores": [{"id": "file", "default": "true"}]}


def list_versions(call: Call) -> Json:
    if call.request.path == "/":
        call.response.status = "300 Multiple Choices"
    href = f"{links_root(call.request)}/v2/"
    return {
        "versions": [
            {
                "id": f"v2.{minor}",
                "status": "CURRENT" if minor == 16 else "SUPPORTED",
                "links": [{"rel": "self", "href": href}],
            }
            for minor in (16, 15, 9, 7, 6, 5, 4, 3, 2, 1, 0)
        ]
    }

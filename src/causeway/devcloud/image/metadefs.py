"""/v2/metadefs: the catalog of definitions of metadata, which has one namespace, and its schemas.

Horizon fails if a catalog has none: its pages of images, flavors and aggregates ask for all namespaces of a type.
"""

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import not_found
from causeway.devcloud.image.schemas import collection
from causeway.devcloud.web import Call

NAMESPACES = "/v2/metadefs/namespaces"
TEXT: Json = {"type": "string"}
TIMES: Json = {name: {**TEXT, "format": "date-time", "readOnly": True} for name in ("created_at", "updated_at")}
NAME: Json = {**TEXT, "maxLength": 255}


def _item(name: str, required: list[str], properties: Json) -> Json:
    return {"name": name, "required": required, "properties": {**properties, **TIMES, "self": TEXT, "schema": TEXT}}


RESOURCE_TYPE = _item("resource_type_association", ["name"], {"name": NAME, "prefix": NAME, "properties_target": NAME})
PROPERTY: Json = {
    "name": "property",
    "required": ["title", "type"],
    "properties": {
        "name": NAME,
        "title": TEXT,
        "description": TEXT,
        "type": {**TEXT, "enum": ["array", "boolean", "integer", "number", "object", "string", None]},
    },
}
OBJECT = _item("object", ["name"], {"name": NAME, "description": TEXT, "properties": {"type": "object"}})
TAG = _item("tag", ["name"], {"name": NAME})
NAMESPACE = _item(
    "namespace",
    ["namespace"],
    {
        "namespace": {**TEXT, "maxLength": 80},
        "display_name": {**TEXT, "maxLength": 80},
        "description": {**TEXT, "maxLength": 500},
        "visibility": {**TEXT, "enum": ["public", "private"]},
        "protected": {"type": "boolean"},
        "owner": NAME,
        "resource_type_associations": {"type": "array", "items": RESOURCE_TYPE},
        "properties": {"type": "object"},
        "objects": {"type": "array", "items": OBJECT},
        "tags": {"type": "array", "items": TAG},
    },
)
SCHEMAS: dict[str, Json] = {
    "namespace": NAMESPACE,
    "namespaces": collection("namespaces", "namespaces", NAMESPACE),
    "resource_type": RESOURCE_TYPE,
    "resource_types": collection("resource_type_associations", "resource_type_associations", RESOURCE_TYPE),
    "property": PROPERTY,
    "properties": collection("properties", "properties", PROPERTY),
    "object": OBJECT,
    "objects": collection("objects", "objects", OBJECT),
    "tag": TAG,
    "tags": collection("tags", "tags", TAG),
}


def show_schema(_call: Call, name: str) -> Json:
    if name not in SCHEMAS:
        raise not_found(f"There is no schema metadefs/{name}.")
    return SCHEMAS[name]


_NAMESPACE = "Causeway::Notes"
_SINCE = "2026-01-01T00:00:00Z"
_TYPES = ("OS::Glance::Image", "OS::Nova::Flavor", "OS::Nova::Aggregate", "OS::Nova::Server", "OS::Cinder::Volumes")
# What a definition is for, of types that have several such things.
_TARGETS = {"OS::Nova::Server": ("metadata", "scheduler_hints")}
_TIMES = {"created_at": _SINCE, "updated_at": _SINCE}
_NOTES: Json = {
    "namespace": _NAMESPACE,
    "display_name": "Notes",
    "description": "What people should know of it. No service reads it.",
    "visibility": "public",
    "protected": True,
    "owner": "admin",
    "resource_type_associations": [
        {"name": name, **_TIMES} | ({"properties_target": target} if target else {})
        for name in _TYPES
        for target in _TARGETS.get(name, (None,))
    ],
    "self": f"{NAMESPACES}/{_NAMESPACE}",
    "schema": "/v2/schemas/metadefs/namespace",
    **_TIMES,
}
_NOTE: Json = {"name": "note", "title": "Note", "description": "A sentence or two.", "type": "string"}


def list_namespaces(call: Call) -> Json:
    """With ``resource_types``, those that have definitions for one of these types."""
    wanted = call.request.params.get("resource_types")
    names = set(_TYPES if wanted is None else wanted if isinstance(wanted, list) else wanted.split(","))
    found = [_NOTES] if names & set(_TYPES) else []
    return {"namespaces": found, "first": NAMESPACES, "schema": "/v2/schemas/metadefs/namespaces"}


def show_namespace(_call: Call, namespace: str) -> Json:
    if namespace != _NAMESPACE:
        raise not_found(f"Metadata definition namespace={namespace} was not found.")
    return {**_NOTES, "properties": {"note": _NOTE}, "objects": [], "tags": []}


def list_resource_types(_call: Call) -> Json:
    return {"resource_types": [{"name": name, **_TIMES} for name in _TYPES]}

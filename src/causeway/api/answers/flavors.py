"""Flavors, their extra specs, and who may use them."""

from __future__ import annotations

from causeway.api.answers.parts import (
    BOOLEAN,
    COUNT,
    LINKS,
    NEXT,
    NUMBER,
    TEXT,
    changing,
    either,
    enum,
    many,
    mapping,
    null,
    record,
    shown_as,
    since,
    until,
    versions,
)

_BRIEF = record({"id": TEXT, "name": TEXT, "links": LINKS, "description": since(55, null(TEXT))})
_FLAVOR = record(
    {
        "id": TEXT,
        "name": TEXT,
        "ram": COUNT,
        "disk": COUNT,
        "vcpus": COUNT,
        # No swap was an empty text until 2.74.
        "swap": changing((1, 74, either(enum(""), COUNT)), (75, None, COUNT)),
        "OS-FLV-EXT-DATA:ephemeral": COUNT,
        "os-flavor-access:is_public": BOOLEAN,
        "links": LINKS,
        "OS-FLV-DISABLED:disabled": until(101, BOOLEAN),
        "rxtx_factor": until(101, either(enum(""), NUMBER)),
        "description": since(55, null(TEXT)),
    },
    # by policy
    {"extra_specs": since(61, mapping(TEXT))},
)
INDEX = shown_as("flavors", many(_BRIEF), {"flavors_links": NEXT})
DETAIL = shown_as("flavors", many(_FLAVOR), {"flavors_links": NEXT})
SHOW = shown_as("flavor", _FLAVOR)
ACCESS = shown_as("flavor_access", many(record({"flavor_id": TEXT, "tenant_id": TEXT})))
EXTRA_SPECS = shown_as("extra_specs", mapping(TEXT))
EXTRA_SPEC = versions(mapping(TEXT) | {"minProperties": 1, "maxProperties": 1})

"""The documents that say which versions of the API there are, for which no token is needed.

Source: Compute API reference, "API Versions".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from causeway import errors
from causeway.api import faults, versions
from causeway.api.answers import proxies as answers
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas.common import IGNORED_QUERY

UPDATED = {"v2.0": "2011-01-21T11:33:21Z", "v2.1": "2013-07-23T11:33:21Z"}
PATHS = {"v2.0": "v2", "v2.1": "v2.1"}


def host_url(environ: Mapping[str, Any]) -> str:
    """Scheme, host and mount point, as the caller sees them."""
    host = environ.get("HTTP_HOST") or f"{environ['SERVER_NAME']}:{environ['SERVER_PORT']}"
    return f"{environ['wsgi.url_scheme']}://{host}{environ.get('SCRIPT_NAME', '')}".rstrip("/")


def answer(path: str, root: str) -> Response:
    """The answer to ``/``, ``/v2.1`` and ``/v2``; for any other path the choice of versions (300)."""
    if path == "/":
        return Response(200, {"versions": [_entry(name, root) for name in PATHS]})
    for name, short in PATHS.items():
        if path.strip("/") == short:
            return Response(200, _document(name, root))
    choices = [
        {
            "id": name,
            "status": _status(name),
            "links": [{"rel": "self", "href": f"{root}/{short}{path}"}],
            "media-types": _media_types(name),
        }
        for name, short in PATHS.items()
    ]
    return Response(300, {"choices": choices})


@handler(query=IGNORED_QUERY, answer=answers.VERSION)
def show(request: ApiRequest, version_id: str) -> Response:
    """A version's document by its id; the legacy endpoint only has its own."""
    name = version_id if request.api_prefix == "/v2.1" else "v2.0"
    if name not in PATHS:
        raise errors.NotFound(faults.NOT_FOUND)
    return Response(200, _document(name, request.base_url))


def _document(name: str, root: str) -> dict[str, Any]:
    described = {"rel": "describedby", "type": "text/html", "href": "https://docs.openstack.org/api-ref/compute/"}
    entry = _entry(name, root)
    entry["links"].append(described)
    return {"version": entry | {"media-types": _media_types(name)}}


def _status(name: str) -> str:
    return "CURRENT" if name == "v2.1" else "DEPRECATED"


def _entry(name: str, root: str) -> dict[str, Any]:
    current = name == "v2.1"
    return {
        "id": name,
        "status": _status(name),
        "version": str(versions.MAX) if current else "",
        "min_version": str(versions.MIN) if current else "",
        "updated": UPDATED[name],
        "links": [{"rel": "self", "href": f"{root}/{PATHS[name]}/"}],
    }


def _media_types(name: str) -> list[dict[str, str]]:
    number = "2.1" if name == "v2.1" else "2"
    return [{"base": "application/json", "type": f"application/vnd.openstack.compute+json;version={number}"}]

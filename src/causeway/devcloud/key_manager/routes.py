"""The Key Manager API on one screen: what clients of Compute and Block Storage use of it."""

import msgspec

from causeway.devcloud.bodies import Json
from causeway.devcloud.cloud import Cloud
from causeway.devcloud.key_manager import secrets
from causeway.devcloud.web import Call, Route, Service, links_root, phrase

SECRET = "/v1/secrets/{secret_id}"


def list_versions(call: Call, **_: str) -> Json:
    call.response.status = "300 Multiple Choices"
    link = {"rel": "self", "href": f"{links_root(call.request)}/v1/"}
    version = {"id": "v1", "status": "CURRENT", "min_version": "1.0", "max_version": "1.1", "links": [link]}
    return {"versions": [version]}


ROUTES = [
    Route("GET", "/", list_versions, public=True),
    Route("GET", "/v1", list_versions, public=True),
    Route("GET", "/v1/secrets", secrets.list_secrets),
    Route("POST", "/v1/secrets", secrets.create, 201),
    Route("GET", SECRET, secrets.show),
    Route("GET", SECRET + "/payload", secrets.show_payload),
    Route("DELETE", SECRET, secrets.delete, 204),
    Route("PUT", SECRET + "/acl", secrets.replace_acl),
]


def error_body(status: int, message: str, _kind: str) -> tuple[str, bytes]:
    body = {"code": status, "title": phrase(status), "description": message}
    return "application/json", msgspec.json.encode(body)


def make_service(cloud: Cloud) -> Service:
    return Service(cloud, "key-manager", ROUTES, error_body)

"""Identity's version documents."""

from causeway.devcloud.bodies import Json
from causeway.devcloud.web import Call, links_root


def list_versions(call: Call) -> Json:
    call.response.status = "300 Multiple Choices"
    return {"versions": {"values": [_version(call)]}}


def show_version(call: Call) -> Json:
    return {"version": _version(call)}


def _version(call: Call) -> Json:
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": f"{links_root(call.request)}/v3/"}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    }

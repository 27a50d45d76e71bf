"""Version documents and microversions of Block Storage."""

import re

import falcon

from causeway.devcloud.bodies import Json
from causeway.devcloud.errors import ApiError
from causeway.devcloud.web import Call, links_root

MINIMUM, MAXIMUM = (3, 0), (3, 71)
HEADER = "OpenStack-API-Version"
ATTACHMENTS = (3, 27)
COMPLETE = (3, 44)


def negotiate(request: falcon.Request, response: falcon.Response) -> tuple[int, int]:
    """The microversion of a request. Raises ApiError 400 for a malformed one, 406 for one that is not supported."""
    version = MINIMUM
    for item in (request.get_header(HEADER) or "").split(","):
        service, _, wanted = item.strip().partition(" ")
        if service != "volume":
            continue
        if wanted == "latest":
            version = MAXIMUM
            continue
        match = re.fullmatch(r"(\d+)\.(\d+)", wanted)
        if match is None:
            raise ApiError(
                400, f"API Version String '{wanted}' is of invalid format. It must be of format 'major.minor'."
            )
        version = (int(match.group(1)), int(match.group(2)))
    if not MINIMUM <= version <= MAXIMUM:
        text = f"Version {version[0]}.{version[1]} is not supported by the API. Minimum is 3.0 and maximum is 3.71."
        raise ApiError(406, text)
    response.set_header(HEADER, f"volume {version[0]}.{version[1]}")
    response.set_header("Vary", HEADER)
    return version


def list_versions(call: Call) -> Json:
    if call.request.path == "/":
        call.response.status = "300 Multiple Choices"
    return {
        "versions": [
            {
                "id": "v3.0",
                "status": "CURRENT",
                "version": "3.71",
                "min_version": "3.0",
                "updated": "2023-08-31T00:00:00Z",
                "links": [{"rel": "self", "href": f"{links_root(call.request)}/v3/"}],
                "media-types": [
                    {"base": "application/json", "type": "application/vnd.openstack.volume+json;version=3"}
                ],
            }
        ]
    }

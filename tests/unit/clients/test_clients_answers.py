"""What real services answer, as far as a small one near us does not: catalog URLs, error bodies, old versions, caches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from requests.adapters import BaseAdapter

from causeway import errors
from causeway.clients.answers import kind_of, message_of
from causeway.clients.image import ImageClient
from causeway.clients.network import NetworkClient
from causeway.clients.network_cache import NetworkCache
from causeway.clients.network_info import Around
from causeway.clients.session import ServiceSessions
from causeway.clients.volume import VolumeClient
from causeway.conf import new_config
from causeway.context import RequestContext

BASE = "http://services"


class Answers(BaseAdapter):
    """A transport that answers by a function of the request, and keeps the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[requests.PreparedRequest] = []
        self.answer: Callable[[requests.PreparedRequest], tuple[int, Any]] = lambda _request: (200, {})

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        self.requests.append(request)
        response = requests.Response()
        response.status_code, body = self.answer(request)
        response._content = body if isinstance(body, bytes) else json.dumps(body).encode()
        response.request, response.url = request, request.url or ""
        return response

    def close(self) -> None:
        pass


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def sessions(answers: Answers) -> Iterator[Callable[..., ServiceSessions]]:
    made: list[ServiceSessions] = []

    def make(**groups: dict[str, Any]) -> ServiceSessions:
        transport = requests.Session()
        transport.mount(BASE, answers)
        token = {"auth_type": "admin_token", "endpoint": BASE, "token": "ours"}
        made.append(ServiceSessions(new_config(None, service_user=token, **groups), transport=transport))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture
def user() -> RequestContext:
    return RequestContext(auth_token="theirs", user_id="u", project_id="p", request_id="req-9", overwrite=False)


@pytest.mark.parametrize("endpoint", [BASE, BASE + "/", BASE + "/v2", BASE + "/v2/"])
def test_endpoints_may_have_the_version_or_not(
    sessions: Any, answers: Answers, user: RequestContext, endpoint: str
) -> None:
    answers.answer = lambda _request: (200, {"id": "i"})
    ImageClient(sessions(glance={"endpoint_override": endpoint})).show(user, "i")
    assert answers.requests[0].url == f"{BASE}/v2/images/i"


@pytest.mark.parametrize("part", ["%(project_id)s", "AUTH_%(tenant_id)s"])
def test_endpoints_with_the_project_in_them_get_the_callers(
    sessions: Any, answers: Answers, user: RequestContext, part: str
) -> None:
    answers.answer = lambda _request: (200, {"volume": {"id": "v", "status": "available", "size": 1}})
    VolumeClient(sessions(cinder={"endpoint_template": f"{BASE}/v3/{part}"})).show(user, "v")
    prefix = "AUTH_" if part.startswith("AUTH_") else ""
    assert answers.requests[0].url == f"{BASE}/v3/{prefix}p/volumes/v"


def test_the_callers_token_goes_out_or_the_services_own(sessions: Any, answers: Answers, user: RequestContext) -> None:
    answers.answer = lambda _request: (200, {"id": "i"})
    images = ImageClient(sessions(glance={"endpoint_override": BASE}))
    images.show(user, "i")
    images.show(RequestContext(overwrite=False), "i")
    theirs, ours = (request.headers for request in answers.requests)
    assert (theirs["X-Auth-Token"], theirs.get("X-Service-Token")) == ("theirs", None)
    assert theirs["X-OpenStack-Request-Id"] == "req-9"
    assert ours["X-Auth-Token"] == "ours"


def test_credentials_of_our_own_that_are_refused_are_not_the_users_fault(
    sessions: Any, answers: Answers, user: RequestContext
) -> None:
    answers.answer = lambda _request: (401, {})
    with pytest.raises(errors.ServiceFailed, match="this service's own credentials"):
        ImageClient(sessions(glance={"endpoint_override": BASE})).show_of_server(user, "i")
    sent = [request.headers["X-Auth-Token"] for request in answers.requests]
    assert sent == ["theirs", "ours", "ours"], "a token of ours that is refused is replaced once"


def test_deleting_attachments_needs_a_service_token(sessions: Any, answers: Answers, user: RequestContext) -> None:
    left = {"id": "b", "volume_id": "v", "instance": "i", "status": "attached"}
    answers.answer = lambda _request: (200, {"attachments": [left]})
    others = VolumeClient(sessions(cinder={"endpoint_template": BASE})).delete_attachment(user, "a")
    assert others is not None and [(other.id, other.instance_uuid) for other in others] == [("b", "i")]
    headers = answers.requests[0].headers
    assert (headers["X-Auth-Token"], headers["X-Service-Token"]) == ("theirs", "ours")


def test_service_tokens_are_sent_always_if_configured(answers: Answers, user: RequestContext) -> None:
    transport = requests.Session()
    transport.mount(BASE, answers)
    conf = new_config(
        service_user={"auth_type": "admin_token", "endpoint": BASE, "token": "ours", "send_service_user_token": True},
        glance={"endpoint_override": BASE},
    )
    answers.answer = lambda _request: (200, {"id": "i"})
    ImageClient(ServiceSessions(conf, transport=transport)).show(user, "i")
    assert answers.requests[0].headers["X-Service-Token"] == "ours"


def test_a_volume_service_that_is_older_is_asked_in_its_version(
    sessions: Any, answers: Answers, user: RequestContext
) -> None:
    def old(request: requests.PreparedRequest) -> tuple[int, Any]:
        if request.headers["OpenStack-API-Version"] != "volume 3.44":
            return 406, {"computeFault": {"message": "Version 3.60 is not supported by the API."}}
        return 200, {"volume": {"id": "v", "status": "available", "size": 1}}

    answers.answer = old
    volumes = VolumeClient(sessions(cinder={"endpoint_template": BASE}))
    assert volumes.show(user, "v").size == 1
    volumes.show(user, "v")
    assert len(answers.requests) == 3
    answers.answer = lambda _request: (406, {})
    with pytest.raises(errors.ServiceRefused, match="too old"):
        volumes.show(user, "v")


def test_connection_info_is_brought_into_the_drivers_form(
    sessions: Any, answers: Answers, user: RequestContext
) -> None:
    flat = {"driver_volume_type": "nfs", "export": "server:/vol", "name": "volume-v"}
    attachment = {"id": "a", "volume_id": "v", "status": "attaching", "connection_info": flat}
    answers.answer = lambda _request: (200, {"attachment": attachment})
    info = VolumeClient(sessions(cinder={"endpoint_template": BASE})).update_attachment(
        user, "a", {"host": "h"}, "/dev/vdb"
    )
    assert info == {
        "driver_volume_type": "nfs",
        "data": {"export": "server:/vol", "name": "volume-v"},
        "serial": "v",
    }
    assert json.loads(answers.requests[0].body or "")["attachment"]["connector"] == {
        "host": "h",
        "mountpoint": "/dev/vdb",
    }


def test_a_binding_that_fails_is_refused_and_deleted(sessions: Any, answers: Answers) -> None:
    failed = {"host": "h", "status": "INACTIVE", "vif_type": "binding_failed"}
    answers.answer = lambda request: (201, {"binding": failed}) if request.method == "POST" else (204, b"")
    network = NetworkClient(sessions(neutron={"endpoint_override": BASE}))
    with pytest.raises(errors.ServiceRefused, match="Binding failed for port x"):
        network.create_binding(None, "x", "h")
    assert [request.method for request in answers.requests] == ["POST", "DELETE"]
    answers.answer = lambda _request: (200, {"port": {"id": "x", "binding:vif_type": "binding_failed"}})
    with pytest.raises(errors.ServiceRefused, match="Binding failed for port x"):
        network.bind_port(None, "x", "h", "server", "compute:nova")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("OverQuota", errors.OverQuota),
        ("IpAddressAlreadyAllocated", errors.Conflict),
        ("IpAddressInUse", errors.Conflict),
        ("IpAddressGenerationFailure", errors.BadRequest),
        ("InvalidIpForSubnet", errors.BadRequest),
        ("MacAddressInUse", errors.RequestRefused),
    ],
)
def test_refused_ports_have_the_compute_apis_codes(
    sessions: Any, answers: Answers, user: RequestContext, kind: str, expected: type[errors.CausewayError]
) -> None:
    refusal = {"NeutronError": {"type": kind, "message": "No.", "detail": ""}}
    answers.answer = lambda request: (200, {"extensions": []}) if request.method == "GET" else (409, refusal)
    with pytest.raises(expected) as caught:
        NetworkClient(sessions(neutron={"endpoint_override": BASE})).create_port(
            user, "p", "s", "n", fixed_ip="192.0.2.1"
        )
    assert type(caught.value) is expected


def test_quotas_of_a_service_without_details_are_counted(sessions: Any, answers: Answers) -> None:
    def plain(request: requests.PreparedRequest) -> tuple[int, Any]:
        if (request.url or "").endswith("/details"):
            return 404, {}
        return (200, {"quota": {"port": 5}}) if "/quotas/" in (request.url or "") else (200, {"ports": [{"id": "x"}]})

    answers.answer = plain
    assert NetworkClient(sessions(neutron={"endpoint_override": BASE})).port_quota(None, "p") == (5, 1)


def test_networks_are_remembered_for_some_time_only() -> None:
    asked: list[list[str]] = []

    def read(ids: list[str]) -> list[dict[str, Any]]:
        asked.append(ids)
        return [{"id": each} for each in ids if each != "gone"]

    port = {"network_id": "n", "fixed_ips": []}
    kept = NetworkCache(read, read, read, lifetime=60)
    for _ in range(3):
        kept.of_ports([port, {"network_id": "m"}])
    assert asked == [["m", "n"]]
    assert kept.of_ports([{"network_id": "gone"}]) == Around({}, {}, {})
    asked.clear()
    forgetful = NetworkCache(read, read, read, lifetime=0)
    for _ in range(2):
        forgetful.of_ports([port])
    assert asked == [["n"], ["n"]]


@pytest.mark.parametrize(
    ("body", "message", "kind"),
    [
        ({"NeutronError": {"type": "PortNotFound", "message": "Gone.", "detail": ""}}, "Gone.", "PortNotFound"),
        ({"NeutronError": {"type": "HTTPNotFound", "message": "", "detail": "Not here."}}, "Not here.", "HTTPNotFound"),
        ({"badRequest": {"message": "Bad.", "code": 400}}, "Bad.", ""),
        ({"error": {"message": "Who?", "code": 401, "title": "Unauthorized"}}, "Who?", ""),
        ({"message": "Plain.", "code": "409 Conflict"}, "Plain.", ""),
        (b"<html><head><title>x</title></head><body><h1>404 Not Found</h1>No image.<br /></body></html>", None, ""),
        (b"just text", "just text", ""),
        (b"", "None", ""),
    ],
)
def test_error_bodies_of_all_kinds_are_understood(body: Any, message: str | None, kind: str) -> None:
    response = requests.Response()
    response._content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response.encoding = "utf-8"
    assert message_of(response) == (message if message is not None else "404 Not Found No image.")
    assert kind_of(response) == kind


@pytest.mark.parametrize(
    ("status", "of_user", "of_ours"),
    [
        (400, errors.RequestRefused, errors.ServiceRefused),
        (409, errors.RequestRefused, errors.ServiceRefused),
        (405, errors.ServiceRefused, errors.ServiceRefused),
        (403, errors.Forbidden, errors.Forbidden),
        (404, errors.ImageNotFound, errors.NotFound),
        (413, errors.OverQuota, errors.OverQuota),
        (429, errors.ServiceFailed, errors.ServiceFailed),
    ],
)
def test_a_refusal_of_what_a_user_asked_for_is_the_users(
    sessions: Any, answers: Answers, user: RequestContext, status: int, of_user: type, of_ours: type
) -> None:
    answers.answer = lambda _request: (status, {"message": "It is in use."})
    images = ImageClient(sessions(glance={"endpoint_override": BASE}))
    with pytest.raises(errors.CausewayError) as theirs:
        images.show(user, "i")
    with pytest.raises(errors.CausewayError) as ours:
        images.list_all({})
    assert (type(theirs.value), type(ours.value)) == (of_user, of_ours)
    if of_user is errors.RequestRefused:
        assert theirs.value.status == 400 and "It is in use." in theirs.value.message

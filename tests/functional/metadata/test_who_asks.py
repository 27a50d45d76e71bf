"""Which server a request comes from: what the metadata agent signs, a load balancer in its place, or the caller's address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway import errors
from causeway.metadata.callers import sign
from causeway.model.instance import Instance
from causeway.store.api import mappings
from causeway.store.cell import instances
from tests.functional.conftest import Cloud, Recorder
from tests.functional.metadata.conftest import SECRET, Guests, application, signed

META_DATA = "/openstack/latest/meta_data.json"
OTHER = "99999999-2222-4333-8444-555555555555"


@pytest.fixture
def network() -> Recorder:
    return Recorder("network")


@pytest.fixture
def directly(cloud: Cloud) -> Guests:
    """Guests that ask without an agent."""
    return Guests(application(cloud))


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({"X-Instance-ID-Signature": "0" * 64}, 403),
        ({"X-Instance-ID-Signature": ""}, 403),
        ({"X-Instance-ID-Signature": "é"}, 403),
        ({"X-Instance-ID": OTHER}, 403),
        ({"X-Instance-ID": OTHER, "X-Instance-ID-Signature": sign(SECRET, OTHER)}, 404),
        ({"X-Instance-ID": "none", "X-Instance-ID-Signature": sign(SECRET, "none")}, 404),
        ({"X-Tenant-ID": "another"}, 404),
        ({"X-Instance-ID": ""}, 400),
        ({"X-Tenant-ID": ""}, 400),
    ],
    ids=str,
)
def test_a_signed_request_is_answered_and_no_other(
    cloud: Cloud, guests: Guests, changes: dict[str, str], status: int
) -> None:
    server = cloud.server()
    answer = guests.ask("GET", META_DATA, headers=signed(server, **changes))
    assert answer.status_code == status
    if status != 200:
        assert answer.headers["content-type"].startswith("text/plain")
        assert server.uuid not in answer.text


def test_the_list_of_versions_is_for_everybody(guests: Guests) -> None:
    assert guests.ask("GET", "/").text.splitlines() == [
        *("1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15"),
        *("2008-02-01", "2008-09-01", "2009-04-04", "latest"),
    ]
    assert guests.ask("GET", "/openstack").status_code == 400


@pytest.mark.parametrize("path", ["/openstack", "/openstack/latest", META_DATA, "/latest/meta-data", "/ec2"])
@pytest.mark.parametrize("gone", ["queued", "deleted", "unscheduled"])
def test_a_server_that_is_gone_gets_nothing(cloud: Cloud, guests: Guests, gone: str, path: str) -> None:
    server = cloud.server()
    assert guests.get(server, path).status_code == 200
    match gone:
        case "queued":
            mappings.queue_for_delete(cloud.services.api, server.uuid)
        case "deleted":
            instances.soft_delete(cloud.cell("cell1"), server.uuid)
            mappings.queue_for_delete(cloud.services.api, server.uuid)
        case "unscheduled":
            with cloud.services.api.write() as connection:
                connection.execute(mappings.TABLE.update().values(cell_uuid=None))
    assert guests.get(server, path).status_code == 404


def test_a_load_balancer_signs_its_own_name(cloud: Cloud, guests: Guests, network: Recorder) -> None:
    server = cloud.server()
    network.answers["networks_of_provider"] = lambda provider: ["n1"] if provider == "lb" else []
    network.answers["ports_with_address"] = [port_of(server)]
    headers = {
        "X-Metadata-Provider": "lb",
        "X-Metadata-Provider-Signature": sign(SECRET, "lb"),
        "X-Forwarded-For": "10.0.0.5, 192.0.2.1",
    }
    assert guests.ask("GET", META_DATA, headers=headers).json["uuid"] == server.uuid
    assert network.calls[-1] == ("ports_with_address", {"args": ("10.0.0.5", ["n1"])})

    calls = len(network.calls)
    for wrong in ({"X-Metadata-Provider-Signature": sign(SECRET, "another")}, {"X-Metadata-Provider-Signature": ""}):
        assert guests.ask("GET", META_DATA, headers=headers | wrong).status_code == 403
    assert len(network.calls) == calls
    unknown = {"X-Metadata-Provider": "other", "X-Metadata-Provider-Signature": sign(SECRET, "other")}
    assert guests.ask("GET", META_DATA, headers=headers | unknown).status_code == 400
    assert guests.ask("GET", META_DATA, headers=headers | {"X-Forwarded-For": ""}).status_code == 400
    network.answers["ports_with_address"] = [port_of(server), port_of(cloud.server())]
    assert guests.ask("GET", META_DATA, headers=headers).status_code == 400


def test_a_direct_caller_is_known_by_its_address(cloud: Cloud, directly: Guests, network: Recorder) -> None:
    server = cloud.server()
    network.answers["ports_with_address"] = [port_of(server)]
    # What everybody can write is not trusted.
    claims = {**signed(cloud.server()), "X-Forwarded-For": "10.0.0.66"}
    answer = directly.ask("GET", META_DATA, headers=claims, remote_addr="10.0.0.5")
    assert answer.json["uuid"] == server.uuid
    assert network.calls == [("ports_with_address", {"args": ("10.0.0.5", None)})]


def test_a_caller_behind_a_proxy_is_known_by_what_the_proxy_saw(
    cloud: Cloud, directly: Guests, network: Recorder
) -> None:
    cloud.option("api", "use_forwarded_for", True)
    network.answers["ports_with_address"] = [port_of(cloud.server())]
    for forwarded, known in [
        ("10.0.0.5", "10.0.0.5"),
        # The first one is what the guest says.
        ("10.0.0.66, 10.0.0.5", "10.0.0.5"),
        ("::ffff:10.0.0.5", "10.0.0.5"),
        ("FD00:0::5", "fd00::5"),
    ]:
        directly.ask("GET", META_DATA, headers={"X-Forwarded-For": forwarded}, remote_addr="192.0.2.1")
        assert network.calls[-1] == ("ports_with_address", {"args": (known, None)})
    calls = len(network.calls)
    answer = directly.ask("GET", META_DATA, headers={"X-Forwarded-For": "nobody"}, remote_addr="192.0.2.1")
    assert (answer.status_code, len(network.calls)) == (400, calls)


@pytest.mark.parametrize(
    "ports",
    [
        lambda _server: [],
        lambda server: [port_of(server), port_of(server)],
        lambda server: [port_of(server) | {"device_id": ""}],
        lambda server: [port_of(server) | {"project_id": "another"}],
        lambda server: [port_of(server) | {"device_id": "dhcp-of-a-network"}],
    ],
    ids=["none", "several", "of nobody", "of another project", "of no server"],
)
def test_an_address_that_belongs_to_no_server_is_not_found(
    cloud: Cloud, directly: Guests, network: Recorder, ports: Callable[[Instance], list[dict[str, Any]]]
) -> None:
    network.answers["ports_with_address"] = ports(cloud.server())
    assert directly.ask("GET", META_DATA, remote_addr="10.0.0.5").status_code == 404


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (errors.ServiceFailed("no answer", details="secret-host"), 503),
        (errors.ServiceRefused("refused", details="secret-host"), 500),
        (RuntimeError("secret-host"), 500),
    ],
)
@pytest.mark.expects_errors("failed: refused", "failed unexpectedly")
def test_a_network_service_that_fails_is_answered_without_details(
    directly: Guests, network: Recorder, failure: Exception, status: int
) -> None:
    network.answers["ports_with_address"] = failure
    answer = directly.ask("GET", META_DATA, remote_addr="10.0.0.5")
    assert answer.status_code == status
    assert "secret-host" not in answer.text and "Traceback" not in answer.text
    assert answer.text.strip()


def test_a_database_that_fails_is_answered_without_details(
    cloud: Cloud, guests: Guests, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise errors.DatabaseFailed("cell1 does not answer", details="secret-host")

    server = cloud.server()
    monkeypatch.setattr(cloud.services.cells, "database", fail)
    answer = guests.get(server, META_DATA)
    assert answer.status_code == 503 and "secret-host" not in answer.text


def test_the_metadata_service_behind_a_proxy_does_not_start_without_a_secret(cloud: Cloud) -> None:
    cloud.option("neutron", "service_metadata_proxy", True)
    with pytest.raises(errors.Misconfigured, match="metadata_proxy_shared_secret"):
        application(cloud)


def port_of(server: Instance) -> dict[str, Any]:
    return {"device_id": server.uuid, "project_id": server.project_id}

"""Vendor data: from a file, and from services of the operator, which may fail."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.functional.conftest import Cloud
from tests.functional.metadata.conftest import Guests
from tests.ports import free_port

VENDOR_DATA, VENDOR_DATA2 = "/openstack/latest/vendor_data.json", "/openstack/latest/vendor_data2.json"


class Service:
    """A service of the operator: what it was asked, and what it answers."""

    def __init__(self) -> None:
        self.asked: list[tuple[dict[str, str], Any]] = []
        self.status, self.body = 200, b'{"domain": "example"}'
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                service.asked.append((dict(self.headers), json.loads(body)))
                self.send_response(service.status)
                if service.status == 302:
                    self.send_header("Location", "/elsewhere")
                self.send_header("Content-Length", str(len(service.body)))
                self.end_headers()
                self.wfile.write(service.body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture
def dynamic(cloud: Cloud, service: Service) -> Service:
    cloud.option("api", "vendordata_providers", ["StaticJSON", "DynamicJSON"])
    cloud.option("api", "vendordata_dynamic_targets", [f"names@{service.url}"])
    return service


def test_vendor_data_is_read_from_a_file(cloud: Cloud, guests: Guests, tmp_path: Path) -> None:
    server = cloud.server()
    assert guests.get(server, VENDOR_DATA).json == guests.get(server, VENDOR_DATA2).json == {}
    path = tmp_path / "vendor.json"
    path.write_text('{"puppet": "puppet.example"}')
    cloud.option("api", "vendordata_jsonfile_path", str(path))
    assert guests.get(server, VENDOR_DATA).json == {"puppet": "puppet.example"}
    assert guests.get(server, VENDOR_DATA2).json == {"static": {"puppet": "puppet.example"}}
    cloud.option("api", "vendordata_providers", [])
    assert guests.get(server, VENDOR_DATA).json == guests.get(server, VENDOR_DATA2).json == {}


@pytest.mark.parametrize("content", [None, "{", "\x00"])
@pytest.mark.expects_errors("vendor data of this cloud can't be read")
def test_a_file_that_can_not_be_read(cloud: Cloud, guests: Guests, tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "vendor.json"
    if content is not None:
        path.write_text(content)
    cloud.option("api", "vendordata_jsonfile_path", str(path))
    answer = guests.get(cloud.server(), VENDOR_DATA)
    assert answer.status_code == 500 and "vendor.json" not in answer.text


def test_a_service_is_asked_about_the_server(cloud: Cloud, guests: Guests, dynamic: Service) -> None:
    server = cloud.server(
        hostname="web",
        image_ref="image",
        user_data="aGVsbG8=",
        metadata={"purpose": "test"},
        system_metadata={"boot_roles": "member,reader"},
    )
    assert guests.get(server, "/openstack/latest/meta_data.json").status_code == 200
    assert dynamic.asked == []
    assert guests.get(server, VENDOR_DATA2).json == {"names": {"domain": "example"}}
    ((headers, asked),) = dynamic.asked
    assert asked == {
        "project-id": "project",
        "instance-id": server.uuid,
        "image-id": "image",
        "user-data": "aGVsbG8=",
        "hostname": "web.novalocal",
        "metadata": {"purpose": "test"},
        "boot-roles": "member,reader",
    }
    # No credentials are set for it.
    assert "X-Auth-Token" not in headers


def test_a_service_of_vendor_data_is_asked_once_for_what_is_remembered(
    cloud: Cloud, guests: Guests, dynamic: Service
) -> None:
    cloud.option("api", "metadata_cache_expiration", 600)
    server = cloud.server()
    for version in ("2016-10-06", "latest", "latest"):
        assert guests.get(server, f"/openstack/{version}/vendor_data2.json").json == {"names": {"domain": "example"}}
    assert len(dynamic.asked) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [(500, b"{}"), (404, b"{}"), (302, b""), (200, b"no json")],
    ids=["500", "404", "302", "no json"],
)
@pytest.mark.parametrize("fatal", [False, True])
def test_a_service_that_fails_is_left_out_or_fatal_as_configured(
    cloud: Cloud, guests: Guests, dynamic: Service, status: int, body: bytes, fatal: bool
) -> None:
    cloud.option("api", "vendordata_dynamic_failure_fatal", fatal)
    dynamic.status, dynamic.body = status, body
    answer = guests.get(cloud.server(), VENDOR_DATA2)
    assert len(dynamic.asked) == 1
    if fatal:
        assert answer.status_code == 503 and dynamic.url not in answer.text
    else:
        assert answer.json == {"names": {}}


@pytest.mark.expects_errors("vendordata_dynamic_targets")
def test_one_that_is_not_there_and_targets_that_are_none(cloud: Cloud, guests: Guests, dynamic: Service) -> None:
    gone = f"gone@http://127.0.0.1:{free_port()}/"
    targets = [gone, f"names@{dynamic.url}", f"names@{dynamic.url}/2", "no-url"]
    cloud.option("api", "vendordata_dynamic_targets", targets)
    assert guests.get(cloud.server(), VENDOR_DATA2).json == {"gone": {}, "names": {"domain": "example"}}
    assert len(dynamic.asked) == 1

"""A body that comes in chunks, without a length, is read on real servers: passwords of guests, and bodies of the API."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests

from causeway.http.server import make_server
from tests.functional.conftest import Cloud
from tests.functional.metadata.conftest import SECRET, application, signed

PASSWORD = "/openstack/latest/password"


@contextmanager
def _served(app: Any) -> Iterator[str]:
    server = make_server("127.0.0.1", 0, app, threads=4, name="tested")
    thread = threading.Thread(target=server.serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.bind_addr[1]}"
    server.stop()
    thread.join()


@pytest.fixture
def metadata(cloud: Cloud) -> Iterator[str]:
    cloud.option("neutron", "service_metadata_proxy", True)
    cloud.option("neutron", "metadata_proxy_shared_secret", SECRET)
    cloud.option("api", "metadata_cache_expiration", 0)
    with _served(application(cloud)) as url:
        yield url


def _post(url: str, headers: dict[str, str], *parts: bytes) -> requests.Response:
    # An iterator has no length, so that it is sent in chunks.
    return requests.post(url, data=iter(parts), headers=headers, timeout=60)


def test_a_password_in_chunks_is_stored(cloud: Cloud, metadata: str) -> None:
    server = cloud.server()
    assert _post(metadata + PASSWORD, signed(server), b"first", b"second").status_code == 200
    assert requests.get(metadata + PASSWORD, headers=signed(server), timeout=60).text == "firstsecond"


def test_a_password_in_chunks_that_is_too_long_is_refused(cloud: Cloud, metadata: str) -> None:
    server = cloud.server()
    assert _post(metadata + PASSWORD, signed(server), *[b"A" * 1000] * 200).status_code == 400
    assert requests.get(metadata + PASSWORD, headers=signed(server), timeout=60).text == ""


def test_a_body_of_the_api_in_chunks_is_read(cloud: Cloud, app: Any) -> None:
    cloud.server()
    with _served(app) as url:
        headers = {"X-Auth-Token": "user:project", "Content-Type": "application/json"}
        answer = _post(f"{url}/v2.1/os-keypairs", headers, b'{"keypair": ', b'{"name": 5}}')
        assert answer.status_code == 400
        assert "name" in answer.text, "it was read, and checked"
        assert _post(f"{url}/v2.1/os-keypairs", headers, *[b" " * 10_000] * 20).status_code == 413

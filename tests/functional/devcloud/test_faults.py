"""Faults on request, and what a broken transfer leaves behind."""

import hashlib
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests
import tenacity

from causeway.devcloud import Fault

OCTETS = {"Content-Type": "application/octet-stream"}
DATA = os.urandom(300_000)


@pytest.fixture(params=["socket", "direct"])
def devcloud(devcloud: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Faults show to callers in the same process as they do to those behind a socket."""
    prefix = f"{devcloud.url}/"
    if request.param == "direct":
        devcloud.http.mount(prefix, devcloud.direct)
    yield devcloud
    devcloud.http.adapters.pop(prefix, None)


def make_image(devcloud: Any, data: bytes | None = None) -> str:
    body = {"name": "i", "disk_format": "raw", "container_format": "bare"}
    image = str(devcloud.ok("POST", "/image/v2/images", body, "demo")["id"])
    if data is not None:
        assert upload(devcloud, image, data).status_code == 204
    return image


def upload(devcloud: Any, image: str, data: Any) -> requests.Response:
    reply = devcloud.call("PUT", f"/image/v2/images/{image}/file", user="demo", data=data, headers=OCTETS)
    assert isinstance(reply, requests.Response)
    return reply


def show(devcloud: Any, image: str) -> Any:
    return devcloud.ok("GET", f"/image/v2/images/{image}", user="demo")


def chunks() -> Iterator[bytes]:
    for start in range(0, len(DATA), 65536):
        yield DATA[start : start + 65536]


def test_a_chunked_upload_is_hashed_and_kept(devcloud: Any) -> None:
    image = make_image(devcloud)
    assert upload(devcloud, image, chunks()).status_code == 204
    shown = show(devcloud, image)
    assert (shown["status"], shown["size"], shown["os_hash_algo"]) == ("active", len(DATA), "sha512")
    assert shown["os_hash_value"] == hashlib.sha512(DATA).hexdigest()
    for again in (b"again", chunks()):
        assert upload(devcloud, image, again).status_code == 409
    path = f"/image/v2/images/{image}/file"
    whole = devcloud.call("GET", path, user="demo")
    assert (whole.content, whole.headers["Content-MD5"]) == (DATA, hashlib.md5(DATA).hexdigest())
    part = devcloud.call("GET", path, user="demo", headers={"Range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, DATA[100:200])
    assert part.headers["Content-Range"] == f"bytes 100-199/{len(DATA)}"


def test_a_request_whose_answer_is_held_is_carried_out(devcloud: Any) -> None:
    path = devcloud.cloud.faults._path
    path.write_text("[{action: delay_reply, method: PUT, path: /file$, seconds: 60, times: 1}]")
    image = make_image(devcloud)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(upload, devcloud, image, DATA)
        hits = path.with_name(f"{path.name}.hits")
        for attempt in tenacity.Retrying(wait=tenacity.wait_fixed(0.05), stop=tenacity.stop_after_delay(30)):
            with attempt:
                assert hits.read_text() == f"delay_reply PUT image/v2/images/{image}/file\n"
                assert show(devcloud, image)["status"] == "active"
        assert not waiting.done()
        path.unlink()
        assert waiting.result().status_code == 204
    hits.unlink()


def test_an_image_service_that_dies_during_an_upload_leaves_the_image_queued(devcloud: Any) -> None:
    image = make_image(devcloud)
    devcloud.cloud.faults.add(Fault("drop", "/file$", method="PUT", after_bytes=100_000, times=1))
    with pytest.raises(requests.RequestException):
        upload(devcloud, image, chunks())
    assert show(devcloud, image)["status"] == "queued"
    assert not list(devcloud.cloud.images_dir.glob(f"{image}*"))
    assert upload(devcloud, image, chunks()).status_code == 204


def test_a_download_that_breaks_is_noticed(devcloud: Any) -> None:
    image = make_image(devcloud, DATA)
    devcloud.cloud.faults.add(Fault("drop", "/file$", method="GET", after_bytes=100_000, times=1))
    with pytest.raises(requests.RequestException):
        devcloud.call("GET", f"/image/v2/images/{image}/file", user="demo")


def test_corrupt_bytes_do_not_match_the_hash(devcloud: Any) -> None:
    image = make_image(devcloud, DATA)
    devcloud.cloud.faults.add(Fault("corrupt", "/file$", after_bytes=100_000, times=1))
    content = devcloud.call("GET", f"/image/v2/images/{image}/file", user="demo").content
    assert content[:100_000] == DATA[:100_000]
    assert len(content) == len(DATA)
    assert hashlib.sha512(content).hexdigest() != show(devcloud, image)["os_hash_value"]


def test_a_rule_is_used_up(devcloud: Any) -> None:
    devcloud.cloud.faults.add(Fault("status", "^/v2.0/ports", service="network", status=503, times=2))
    codes = [devcloud.call("GET", "/network/v2.0/ports").status_code for _ in range(3)]
    assert codes == [503, 503, 200]


def test_a_request_whose_reply_is_lost_was_carried_out(devcloud: Any) -> None:
    devcloud.cloud.faults.add(Fault("lose_reply", "/networks$", method="POST", times=1))
    with pytest.raises(requests.RequestException):
        devcloud.call("POST", "/network/v2.0/networks", {"network": {"name": "lost"}})
    (found,) = devcloud.ok("GET", "/network/v2.0/networks?name=lost")["networks"]
    devcloud.ok("DELETE", f"/network/v2.0/networks/{found['id']}")


def test_a_request_that_was_cut_off_was_not_carried_out(devcloud: Any) -> None:
    devcloud.cloud.faults.add(Fault("drop", "/networks$", method="POST", times=1))
    with pytest.raises(requests.RequestException):
        devcloud.call("POST", "/network/v2.0/networks", {"network": {"name": "dropped"}})
    assert devcloud.ok("GET", "/network/v2.0/networks?name=dropped")["networks"] == []


def test_a_hanging_service_lets_the_client_time_out(devcloud: Any) -> None:
    devcloud.cloud.faults.add(Fault("hang", "/volumes", service="volume", seconds=3600))
    headers = {"X-Auth-Token": devcloud.token("demo")}
    with pytest.raises(requests.Timeout):
        devcloud.http.get(f"{devcloud.url}/volume/v3/volumes", headers=headers, timeout=0.2)
    devcloud.cloud.faults.clear()
    assert devcloud.call("GET", "/volume/v3/volumes").status_code == 200


def test_what_is_delayed_for_longer_than_its_caller_waits_is_carried_out(devcloud: Any) -> None:
    devcloud.cloud.faults.add(Fault("delay", "/networks$", method="POST", seconds=3600, times=1))
    headers, body = {"X-Auth-Token": devcloud.token("causeway")}, {"network": {"name": "late"}}
    with pytest.raises(requests.Timeout):
        devcloud.http.post(f"{devcloud.url}/network/v2.0/networks", json=body, headers=headers, timeout=0.2)
    assert devcloud.ok("GET", "/network/v2.0/networks?name=late")["networks"] == []
    devcloud.cloud.faults.clear()
    waiting = tenacity.Retrying(
        stop=tenacity.stop_after_delay(20),
        wait=tenacity.wait_fixed(0.02),
        retry=tenacity.retry_if_result(lambda found: not found),
    )
    found = waiting(lambda: devcloud.ok("GET", "/network/v2.0/networks?name=late")["networks"])
    devcloud.ok("DELETE", f"/network/v2.0/networks/{found[0]['id']}")


def test_a_slow_service_answers_late(devcloud: Any) -> None:
    devcloud.cloud.faults.add(Fault("delay", "/v2/images", seconds=0.2, times=1))
    began = time.monotonic()
    assert devcloud.call("GET", "/image/v2/images").status_code == 200
    assert time.monotonic() - began >= 0.2


@pytest.mark.expects_errors("is not a list of fault rules")
def test_rules_come_from_a_file_that_is_read_again(devcloud: Any) -> None:
    path = devcloud.cloud.config.state_dir / "devcloud-faults.yaml"
    path.write_text("- {service: image, path: images, action: status, status: 500}\n")
    assert devcloud.call("GET", "/image/v2/images").status_code == 500
    path.write_text("not: a list\n")
    assert devcloud.call("GET", "/image/v2/images").status_code == 200
    path.unlink()
    assert devcloud.call("GET", "/image/v2/images").status_code == 200


def test_held_up_requests_continue_when_the_file_is_deleted(devcloud: Any) -> None:
    path = devcloud.cloud.config.state_dir / "devcloud-faults.yaml"
    path.write_text("- {service: image, path: images, action: delay, seconds: 3600, times: 1}\n")
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(devcloud.call, "GET", "/image/v2/images")
        with pytest.raises(TimeoutError):
            held.result(0.3)
        path.unlink()
        assert held.result(20).status_code == 200


def test_calls_are_counted_by_route(devcloud: Any) -> None:
    devcloud.token("causeway")
    devcloud.cloud.reset_calls()
    for _ in range(2):
        devcloud.call("GET", "/network/v2.0/ports/none")
    assert dict(devcloud.cloud.calls) == {"network GET /v2.0/ports/{port_id}": 2}


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/network/v2.0/ports", {"port": {"network_id": 7}}, 404),
        ("POST", "/network/v2.0/subnets", {"subnet": {"cidr": "x"}}, 404),
        ("POST", "/network/v2.0/networks", {"network": {"name": 3}}, 400),
        ("POST", "/network/v2.0/networks", "text", 400),
        ("POST", "/image/v2/images", {"disk_format": "paper"}, 400),
        ("POST", "/image/v2/images", {"status": "active"}, 403),
        ("POST", "/volume/v3/volumes", {"volume": {"size": 0}}, 400),
        ("POST", "/volume/v3/volumes", {"volume": {"size": 1, "imageRef": "none"}}, 400),
        ("POST", "/volume/v3/volumes", None, 400),
        ("GET", "/network/v2.0/nothing", None, 404),
        ("PUT", "/network/v2.0/networks", {}, 405),
    ],
)
def test_bad_input_is_refused(devcloud: Any, method: str, path: str, body: Any, status: int) -> None:
    assert devcloud.call(method, path, body, user="demo").status_code == status

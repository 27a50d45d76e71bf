"""One resize and its confirm: each request's id in every call to the services around."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud


@pytest.fixture
def reported(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Request id -> the services that got it."""
    found: dict[str, set[str]] = defaultdict(set)

    def record(prefix: str, application: Callable[..., Any]) -> Callable[..., Any]:
        def call(environ: dict[str, Any], start_response: Any) -> Any:
            if environ["REQUEST_METHOD"] != "GET":
                found[environ.get("HTTP_X_OPENSTACK_REQUEST_ID", "none")].add(prefix)
            return application(environ, start_response)

        return call

    web = cloud.parts.web
    monkeypatch.setattr(web, "_mounts", [(prefix, record(prefix, application)) for prefix, application in web._mounts])
    return found


def test_the_services_around_are_notified(cloud: Cloud, reported: dict[str, set[str]]) -> None:
    server = cloud.boot()
    cloud.attach(server, cloud.volume())
    cloud.without_rounds()
    action = f"/servers/{server.id}/action"
    resize = cloud.member.compute.post(action, json={"resize": {"flavorRef": "gen2.small"}})
    cloud.wait(server, "VERIFY_RESIZE")
    confirm = cloud.member.compute.post(action, json={"confirmResize": None})
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert reported[resize.headers["X-OpenStack-Request-ID"]] >= {"/image", "/network", "/volume"}
    assert reported[confirm.headers["X-OpenStack-Request-ID"]] >= {"/network", "/volume"}

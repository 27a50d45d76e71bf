"""Placement learns for which request it is asked."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from causeway.context import RequestContext
from causeway.embedded.placement.local import LocalPlacement


def test_every_call_of_a_thread_names_the_request(placement: LocalPlacement, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also the second one: Placement in this process makes contexts of its own."""
    reported: list[str | None] = []
    application = placement.internal_app

    def record(environ: dict[str, Any], start_response: Any) -> Any:
        reported.append(environ.get("HTTP_X_OPENSTACK_REQUEST_ID"))
        return application(environ, start_response)

    monkeypatch.setattr(placement, "internal_app", record)
    client = placement.client()
    context = RequestContext()
    for _ in range(2):
        client.get_provider(str(uuid.uuid4()))
    RequestContext(global_request_id="req-of-somebody-else")
    client.get_provider(str(uuid.uuid4()))
    assert reported == [context.request_id, context.request_id, "req-of-somebody-else"]

"""The API's own description, tried out by schemathesis: whatever it says may be sent is answered, and never with a 500."""

from __future__ import annotations

from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings

from causeway.api import openapi
from causeway.api.routes import ROUTES
from causeway.model.audit import Report
from causeway.model.candidates import MoveCandidates, MoveContents
from causeway.store.database import utcnow

CASES = 3


def test_nothing_that_the_description_allows_ends_in_a_server_error(app: Any, cloud: Any) -> None:
    cloud.services.conductor.answers |= {"audit": Report(utcnow()), "map_server": Report(utcnow())}
    cloud.services.conductor.answers["move_candidates"] = MoveCandidates("", "", "", "", "", MoveContents(None))
    description = schemathesis.openapi.from_wsgi("/openapi.json", app)
    broken, tried = [], 0
    for found in description.get_all_operations():
        operation = found.ok()

        @seed(1)
        @settings(
            max_examples=CASES,
            deadline=None,
            phases=[Phase.generate],
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def answered(case: Any) -> None:
            nonlocal tried
            tried += 1
            answer = case.call(headers={"X-Auth-Token": "admin"})
            if answer.status_code == 500:
                broken.append((case.method, case.path, case.body, answer.text))

        answered()
    assert broken == []
    assert tried > 100


def test_what_takes_no_body_is_described_so() -> None:
    paths = openapi.description(ROUTES)["paths"]
    assert paths["/servers/{server_id}/tags/{tag}"]["put"]["requestBody"]["required"] is False
    assert paths["/servers"]["post"]["requestBody"]["required"] is True

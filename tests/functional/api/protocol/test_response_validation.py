"""``[api] response_validation``: what becomes of an answer that is not what its schema says."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.model.instance import Instance

BODY: dict[str, dict[str, str]] = {"os-getConsoleOutput": {}}
DIFFERENCE = "output is of type NoneType, not string"


@pytest.fixture
def path(server: Instance, conductor: Any) -> str:
    """A request whose answer differs: the recorder knows of no output, which no conductor answers."""
    conductor.answers["get_console_output"] = None
    return f"/servers/{server.uuid}/action"


def test_all_tests_look_at_answers(cloud: Any) -> None:
    assert cloud.services.conf.api.response_validation == "error"


@pytest.mark.expects_errors("differs from its schema")
def test_error_is_a_500(api: Any, path: str, caplog: pytest.LogCaptureFixture) -> None:
    answer = api.post(path, BODY, version="2.1")
    assert (answer.status, answer.fault) == (500, "computeFault")
    assert "POST /servers/{server_id}/action:os-getConsoleOutput in version 2.1" in answer.message
    assert DIFFERENCE in answer.message and DIFFERENCE in caplog.text


def test_warn_is_a_line_in_the_log(api: Any, cloud: Any, path: str, caplog: pytest.LogCaptureFixture) -> None:
    cloud.option("api", "response_validation", "warn")
    answer = api.post(path, BODY)
    assert (answer.status, answer.json) == (200, {"output": None})
    (line,) = [record for record in caplog.records if DIFFERENCE in record.getMessage()]
    assert line.levelname == "WARNING"


def test_ignore_does_not_look(api: Any, cloud: Any, path: str, caplog: pytest.LogCaptureFixture) -> None:
    cloud.option("api", "response_validation", "ignore")
    assert api.post(path, BODY).json == {"output": None}
    assert DIFFERENCE not in caplog.text

"""The request context: what travels, what shows."""

from __future__ import annotations

import logging

import pytest
from oslo_config import cfg
from oslo_log import formatters
from oslo_log import log as oslo_log

from causeway.context import RequestContext, admin_context


@pytest.fixture
def context() -> RequestContext:
    return RequestContext(
        user_id="user1",
        project_id="project1",
        roles=["member"],
        service_roles=["service"],
        auth_token="secret-1",
        service_token="secret-2",
        global_request_id="req-global",
    )


def test_everything_of_a_request_s_context_travels(context: RequestContext) -> None:
    copy = RequestContext.from_dict(context.to_dict())
    for name in ("request_id", "global_request_id", "user_id", "project_id", "roles", "service_roles", "is_admin"):
        assert getattr(copy, name) == getattr(context, name)
    assert (copy.auth_token, copy.service_token) == ("secret-1", "secret-2")
    assert context.request_id.startswith("req-")


def test_log_lines_show_who_and_which_server_and_no_secret(context: RequestContext) -> None:
    conf = cfg.ConfigOpts()
    oslo_log.register_options(conf)
    conf([])
    context.resource_uuid = "server1"
    record = logging.LogRecord("test", logging.INFO, "file", 1, "the message", (), None)
    record.context = context
    line = formatters.ContextFormatter(config=conf, version="1").format(record)
    for expected in ("req-global", context.request_id, "user1", "project1", "server1", "the message"):
        assert expected in line
    assert "secret" not in line + repr(context) + repr(context.get_logging_values())


def test_policy_sees_roles_and_project(context: RequestContext) -> None:
    values = context.to_policy_values()
    assert values["roles"] == ["member"]
    assert values["project_id"] == "project1"


def test_the_system_can_act_as_administrator_in_the_same_request(context: RequestContext) -> None:
    elevated = context.elevated()
    assert elevated.is_admin
    assert set(elevated.roles) == {"member", "admin"}
    assert (elevated.request_id, elevated.auth_token) == (context.request_id, "secret-1")
    assert not context.is_admin


def test_an_administrator_of_the_systems_own_has_no_token() -> None:
    context = admin_context(request_id="req-1")
    assert context.is_admin
    assert context.auth_token is None
    assert context.request_id == "req-1"

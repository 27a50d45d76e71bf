"""What the Compute API once had, and what it never had: 410 and 404, in every microversion and with every method."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.api.routes import ROUTES

REMOVED = """
GET /os-agents
POST /os-agents
PUT /os-agents/1
DELETE /os-agents/1
GET /os-cells
POST /os-cells
GET /os-cells/capacities
GET /os-cells/detail
GET /os-cells/info
POST /os-cells/sync_instances
GET /os-cells/one
PUT /os-cells/one
DELETE /os-cells/one
GET /os-cells/one/capacities
POST /os-certificates
GET /os-certificates/root
GET /os-cloudpipe
POST /os-cloudpipe
PUT /os-cloudpipe/configure-project
GET /os-fixed-ips/10.0.0.1
GET /os-floating-ip-dns
PUT /os-floating-ip-dns/example.org
DELETE /os-floating-ip-dns/example.org
GET /os-floating-ip-dns/example.org/entries/www
PUT /os-floating-ip-dns/example.org/entries/www
DELETE /os-floating-ip-dns/example.org/entries/www
GET /os-floating-ips-bulk
POST /os-floating-ips-bulk
GET /os-floating-ips-bulk/host
PUT /os-floating-ips-bulk/delete
GET /os-fping
GET /os-fping/11111111-2222-3333-4444-555555555555
POST /os-networks
POST /os-networks/add
DELETE /os-networks/1
GET /os-security-group-default-rules
POST /os-security-group-default-rules
GET /os-security-group-default-rules/1
DELETE /os-security-group-default-rules/1
POST /os-tenant-networks
DELETE /os-tenant-networks/1
GET /servers/none/consoles
POST /servers/none/consoles
GET /servers/none/consoles/1
DELETE /servers/none/consoles/1
GET /servers/none/os-virtual-interfaces
"""
REMOVED_ACTIONS = {
    "/os-fixed-ips/10.0.0.1/action": ("reserve", "unreserve"),
    "/os-networks/1/action": ("disassociate", "associate_host", "disassociate_host", "disassociate_project"),
    "/servers/none/action": ("resetNetwork",),
}


@pytest.mark.parametrize("version", ["2.1", "2.36", "2.44", "2.104"])
def test_what_was_removed_is_gone_in_every_version(api: Any, version: str) -> None:
    answers = {}
    for method, path in (line.split() for line in REMOVED.split("\n") if line):
        body: dict[str, Any] | None = {"anything": {}} if method in ("POST", "PUT") else None
        answers[method, path] = api.call(method, path, body, version=version, query="anything=1")
    for path, names in REMOVED_ACTIONS.items():
        for name in names:
            answers["POST", f"{path}:{name}"] = api.post(path, {name: {"anything": 1}}, version=version)
    assert {operation: answer.status for operation, answer in answers.items() if answer.status != 410} == {}
    assert all("no longer available" in answer.message for answer in answers.values())


def test_consoles_of_drivers_that_are_gone_are_refused(api: Any) -> None:
    """The action is gone; from 2.6 on there is no such action."""
    rdp = {"os-getRDPConsole": {"type": "rdp-html5"}}
    assert api.post("/servers/none/action", rdp, version="2.5").status == 410
    assert api.post("/servers/none/action", rdp, version="2.6").status == 404


def test_proxies_are_not_found_from_2_36_on(api: Any) -> None:
    for path in ("/os-networks", "/os-tenant-networks", "/os-floating-ips", "/os-volumes", "/os-baremetal-nodes"):
        assert api.get(path, version="2.36").status == 404, path


def test_another_method_is_not_found_as_in_nova(api: Any, admin: Any) -> None:
    """On every path of the table, with every method that it has in no row."""
    known: dict[str, set[str]] = {}
    for route in ROUTES:
        known.setdefault(route.path, set()).add(route.method)
    wrong = []
    for path, methods in known.items():
        for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} - methods:
            answer = admin.call(method, path.replace("{", "").replace("}", ""), version="2.104")
            if answer.status != 404 or "allow" in answer.headers:
                wrong.append((method, path, answer.status))
    assert wrong == []
    odd = api.call("ODD", "/flavors")
    assert (odd.status, odd.fault) == (404, "itemNotFound")


@pytest.mark.parametrize("path", ["/", "/v2.1/", "/v2.1", "/v2/", "/elsewhere", "/openapi.json", "/healthcheck"])
def test_documents_are_only_read(api: Any, path: str) -> None:
    answer = api.post(path, {}, root="")
    assert (answer.status, answer.fault) == (404, "itemNotFound")

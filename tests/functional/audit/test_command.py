"""``causeway audit`` and ``/os-causeway/audit``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from causeway.cli.main import cli
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.openstack_client import listed, openstack


@pytest.fixture
def orphan(cloud: AuditedCloud) -> str:
    """A server that lost its allocation."""
    server = cloud.boot()
    cloud.parts.around.placement.delete_allocations(server.id)
    return str(server.id)


def run(cloud: AuditedCloud, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["audit", "--state-dir", str(cloud.parts.state.path), *arguments])


def test_a_clean_cloud_ends_with_status_0(cloud: AuditedCloud) -> None:
    result = run(cloud)
    assert result.exit_code == 0, result.output
    assert "All agree." in result.output


@pytest.mark.usefixtures("orphan")
def test_disagreements_end_with_status_1_and_are_shown(cloud: AuditedCloud) -> None:
    result = run(cloud)
    assert result.exit_code == 1
    assert "allocation.missing" in result.output and "--fix" in result.output


def test_json_is_for_scripts(cloud: AuditedCloud, orphan: str) -> None:
    result = run(cloud, "--json")
    report = json.loads(result.output)
    assert result.exit_code == 1 and not report["is_clean"]
    (found,) = report["disagreements"]
    assert (found["kind"], found["server"], found["fix"]["action"]) == ("allocation.missing", orphan, "set_allocation")


@pytest.mark.usefixtures("orphan")
def test_fix_fixes_and_then_all_agree(cloud: AuditedCloud) -> None:
    result = run(cloud, "--fix")
    assert result.exit_code == 0, result.output
    assert "Fixed" in result.output and "allocation.missing" in result.output
    assert run(cloud).exit_code == 0


@pytest.mark.long
def test_the_openstack_client_audits_and_fixes(cloud: AuditedCloud, orphan: str) -> None:
    (found,) = listed(cloud, "cloud", "audit", status=1)
    (known,) = cloud.admin.compute.get("/os-causeway/audit").json()["audit"]["disagreements"]
    shown = ("severity", "kind", "server", "resource", "message")
    assert {name: found[name.capitalize()] for name in shown} == {name: known[name] for name in shown}
    assert (found["Server"], found["Fixed"], found["Fix"]) == (orphan, False, "--fix: set allocation")
    (fixed,) = listed(cloud, "cloud", "audit", "--fix")
    assert (fixed["Server"], fixed["Fixed"], fixed["Fix"]) == (orphan, True, "set allocation")
    written, said = openstack(cloud, "cloud", "audit", "-f", "value")
    assert written.strip() == "" and "Looked at " in said


def test_who_could_not_be_asked_makes_status_2(cloud: AuditedCloud) -> None:
    cloud.fail("status", "/attachments", service="volume", method="GET", status=503)
    result = run(cloud)
    assert result.exit_code == 2
    assert "volume service" in result.output
    assert "Not asked: " in openstack(cloud, "cloud", "audit", status=2, anew=True)[1]


def test_where_there_is_no_cloud_it_says_so(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["audit", "--state-dir", str(tmp_path)])
    assert result.exit_code == 2
    assert "There is no cloud" in result.output


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_api_answers_administrators_only(cloud: AuditedCloud, method: str) -> None:
    refused = cloud.member.compute.request("/os-causeway/audit", method, raise_exc=False)
    assert refused.status_code == 403
    answer = cloud.admin.compute.request("/os-causeway/audit", method, raise_exc=False)
    assert answer.status_code == 200 and answer.json()["audit"]["is_clean"]


def test_with_a_configuration_it_is_done_without_api_and_conductor(
    cloud: AuditedCloud, orphan: str, tmp_path: Path
) -> None:
    embedded, account = cloud.parts, cloud.parts.accounts["causeway"]
    credentials = f"""
auth_type = password
auth_url = {embedded.accounts.auth_url}
username = {account.username}
password = {account.password}
project_name = {account.project_name}
user_domain_id = {account.domain_id}
project_domain_id = {account.domain_id}
"""
    groups = "".join(
        f"[{group}]{credentials}" for group in ("service_user", "neutron", "glance", "cinder", "placement")
    )
    config = tmp_path / "causeway.conf"
    config.write_text(
        f"[DEFAULT]\ntransport_url = {embedded.conf.transport_url}\n"
        f"[api_database]\nconnection = {embedded.state.database('api')}\n{groups}"
    )
    result = CliRunner().invoke(cli, ["audit", "--config-file", str(config), "--json"])
    assert result.exit_code == 1, result.output
    report = json.loads(result.output)
    assert [(found["kind"], found["server"]) for found in report["disagreements"]] == [("allocation.missing", orphan)]
    assert report["counts"]["hosts"] == 4 and report["unreached"] == []

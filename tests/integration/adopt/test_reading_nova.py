"""What Causeway says of the real Nova's files and databases, which it only reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.adopt.commands import causeway
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.outside import checksums
from tests.integration.real_services.configuration import PASSWORD

pytestmark = pytest.mark.timeout(900)

OWN = {("DEFAULT", "transport_url"), ("database", "connection")}
HELPERS = ("nova_sys_admin", "vif_plug_ovs_privileged", "vif_plug_linux_bridge_privileged", "privsep_osbrick")


def judged(cloud: NovaCloud, role: str) -> dict[str, Any]:
    said = causeway("adopt", "options", "--json", "--nova-config", str(cloud.nova.config_of(role)))
    assert said.returncode == 0, said.stdout + said.stderr
    assert PASSWORD not in said.stdout
    answer: dict[str, Any] = json.loads(said.stdout)
    return answer


def options(answer: dict[str, Any], verdict: str) -> set[tuple[str, str]]:
    return {(each["group"], each["option"]) for each in answer["options"] if each["verdict"] == verdict}


@pytest.mark.parametrize("role", ["nova", "conductor-cell1", "conductor-cell2"])
def test_the_file_of_a_role_without_a_host_is_accepted_but_for_queue_and_databases(cloud: NovaCloud, role: str) -> None:
    answer = judged(cloud, role)
    assert options(answer, "differs") >= OWN
    assert {("keystone_authtoken", "auth_url"), ("placement", "username"), ("neutron", "region_name")} <= options(
        answer, "same"
    )
    assert answer["to_add"] == []


@pytest.mark.parametrize("host", ["cell1-host1", "cell2-host2"])
def test_the_file_of_a_compute_is_accepted_and_lacks_two_folders(cloud: NovaCloud, host: str) -> None:
    answer = judged(cloud, f"compute-{host}")
    same = {("DEFAULT", "compute_driver"), ("DEFAULT", "host"), ("libvirt", "connection_uri"), ("libvirt", "virt_type")}
    assert same <= options(answer, "same")
    assert {("DEFAULT", "state_path"), ("DEFAULT", "transport_url")} <= options(answer, "differs")
    assert {(group, "helper_command") for group in HELPERS} <= options(answer, "no effect")
    added = {(each["group"], each["option"]) for each in answer["to_add"]}
    assert added == {("DEFAULT", "instances_path"), ("libvirt", "nfs_mount_point_base")}


def test_db_sync_refuses_the_databases_of_a_nova_that_runs(cloud: NovaCloud, tmp_path: Path) -> None:
    before = {name: checksums(url) for name, url in cloud.nova.databases.items()}
    own = cloud.new_database("refused")
    for api, cell0 in ((cloud.nova.databases["api"], own), (own, cloud.nova.databases["cell0"])):
        file = tmp_path / "databases.conf"
        file.write_text(f"[api_database]\nconnection = {api}\n")
        said = causeway("manage", "db", "sync", f"--config-file={file}", "--cell0", cell0)
        assert said.returncode != 0
        assert "one of Nova's" in said.stderr
        assert "Traceback" not in said.stderr
    after = {name: checksums(url) for name, url in cloud.nova.databases.items()}
    for name, tables in before.items():
        # Its services report all the time.
        changed = {table for table, number in tables.items() if after[name][table] != number}
        assert changed <= {"services", "compute_nodes"}, name
        assert after[name].keys() == tables.keys()

"""Every Nova scenario of Rally, several times each, some at once, by users that Rally makes.

Rally asks what it made to be there, waits for states, and deletes all of it afterwards.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import yaml

from tests.integration.clients import exclusions
from tests.integration.clients.cloud import ADMIN, IMAGE, PUBLIC
from tests.integration.clients.counts import Counts
from tests.integration.clients.tools import Tool

TOOL = Tool("rally", ("rally", "rally-openstack"))

TIMES, AT_ONCE = 3, 2
# Seconds: for all scenarios.
PATIENCE = 3600.0

_SMALL, _LARGER = {"name": "m1.tiny"}, {"name": "m1.small"}
_BOOT: dict[str, Any] = {"image": {"name": IMAGE}, "flavor": _SMALL}
_FROM_VOLUME = _BOOT | {"volume_size": 1}
_RESIZE = {"to_flavor": _LARGER}
_FLAVOR = {"ram": 256, "vcpus": 1, "disk": 1}
_ZONE = {"availability_zone": "rally"}
# Hosts have no storage in common.
_LIVE = {"block_migration": True}
_OUTSIDE = {"floating_network": PUBLIC}
_VOLUMES = {"size": 1}

# Scenarios that want a network of the project's own.
NEED_NETWORK = (
    "NovaServers.boot_and_associate_floating_ip",
    "NovaServers.boot_server_and_attach_interface",
    "NovaServers.boot_server_and_list_interfaces",
    "NovaServers.boot_server_associate_and_dissociate_floating_ip",
)
#: scenario -> its arguments
SCENARIOS: dict[str, dict[str, Any]] = {
    "NovaAggregates.create_aggregate_add_and_remove_host": _ZONE,
    "NovaAggregates.create_aggregate_add_host_and_boot_server": {
        "image": {"name": IMAGE},
        "metadata": {"rally": "true"},
        **_ZONE,
    },
    "NovaAggregates.create_and_delete_aggregate": _ZONE,
    "NovaAggregates.create_and_get_aggregate_details": _ZONE,
    "NovaAggregates.create_and_list_aggregates": _ZONE,
    "NovaAggregates.create_and_update_aggregate": _ZONE,
    "NovaAggregates.list_aggregates": {},
    "NovaAvailabilityZones.list_availability_zones": {"detailed": True},
    "NovaFlavors.create_and_delete_flavor": _FLAVOR,
    "NovaFlavors.create_and_get_flavor": _FLAVOR,
    "NovaFlavors.create_and_list_flavor_access": _FLAVOR | {"is_public": False},
    "NovaFlavors.create_flavor": _FLAVOR,
    "NovaFlavors.create_flavor_and_add_tenant_access": _FLAVOR | {"is_public": False},
    "NovaFlavors.create_flavor_and_set_keys": _FLAVOR | {"extra_specs": {"quota:disk_read_bytes_sec": 10240}},
    "NovaFlavors.list_flavors": {"detailed": True},
    "NovaHypervisors.list_and_get_hypervisors": {"detailed": True},
    "NovaHypervisors.list_and_get_uptime_hypervisors": {"detailed": True},
    "NovaHypervisors.list_and_search_hypervisors": {"detailed": True},
    "NovaHypervisors.list_hypervisors": {"detailed": True},
    "NovaHypervisors.statistics_hypervisors": {},
    "NovaKeypair.boot_and_delete_server_with_keypair": _BOOT,
    "NovaKeypair.create_and_delete_keypair": {},
    "NovaKeypair.create_and_get_keypair": {},
    "NovaKeypair.create_and_list_keypairs": {},
    "NovaServerGroups.create_and_delete_server_group": {"kwargs": {"policies": ["affinity"]}},
    "NovaServerGroups.create_and_get_server_group": {"kwargs": {"policies": ["affinity"]}},
    "NovaServerGroups.create_and_list_server_groups": {"kwargs": {"policies": ["affinity"]}, "all_projects": False},
    "NovaServers.boot_and_associate_floating_ip": _BOOT | _OUTSIDE,
    "NovaServers.boot_and_bounce_server": _BOOT
    | {"actions": [{"hard_reboot": 1}, {"soft_reboot": 1}, {"stop_start": 1}, {"rescue_unrescue": 1}]},
    "NovaServers.boot_and_delete_multiple_servers": _BOOT | {"count": 3},
    "NovaServers.boot_and_delete_server": _BOOT,
    "NovaServers.boot_and_get_console_output": _BOOT,
    "NovaServers.boot_and_get_console_url": _BOOT | {"console_type": "serial"},
    "NovaServers.boot_and_list_server": _BOOT | {"detailed": True},
    "NovaServers.boot_and_live_migrate_server": _BOOT | _LIVE,
    "NovaServers.boot_and_migrate_server": _BOOT,
    "NovaServers.boot_and_rebuild_server": {
        "from_image": {"name": IMAGE},
        "to_image": {"name": IMAGE},
        "flavor": _SMALL,
    },
    "NovaServers.boot_and_show_server": _BOOT,
    "NovaServers.boot_and_update_server": _BOOT,
    "NovaServers.boot_lock_unlock_and_delete": _BOOT,
    "NovaServers.boot_server": _BOOT,
    "NovaServers.boot_server_and_attach_interface": _BOOT
    | {"network_create_args": {}, "subnet_create_args": {}, "subnet_cidr_start": "10.3.0.0/16", "boot_server_args": {}},
    "NovaServers.boot_server_and_list_interfaces": _BOOT,
    "NovaServers.boot_server_associate_and_dissociate_floating_ip": _BOOT | _OUTSIDE,
    "NovaServers.boot_server_attach_created_volume_and_extend": _BOOT | {"volume_size": 1, "new_volume_size": 2},
    "NovaServers.boot_server_attach_created_volume_and_live_migrate": _BOOT | _VOLUMES | _LIVE,
    "NovaServers.boot_server_attach_created_volume_and_resize": _BOOT | _RESIZE | {"volume_size": 1},
    "NovaServers.boot_server_attach_volume_and_list_attachments": _BOOT | {"volume_size": 1, "volume_num": 2},
    "NovaServers.boot_server_from_volume": _FROM_VOLUME,
    "NovaServers.boot_server_from_volume_and_delete": _FROM_VOLUME,
    "NovaServers.boot_server_from_volume_and_live_migrate": _FROM_VOLUME,
    "NovaServers.boot_server_from_volume_and_resize": _FROM_VOLUME | _RESIZE,
    "NovaServers.boot_server_from_volume_snapshot": _FROM_VOLUME,
    "NovaServers.list_servers": {"detailed": True},
    "NovaServers.pause_and_unpause_server": _BOOT,
    "NovaServers.resize_server": _BOOT | _RESIZE,
    "NovaServers.resize_shutoff_server": _BOOT | _RESIZE,
    "NovaServers.shelve_and_unshelve_server": _BOOT,
    "NovaServers.snapshot_server": _BOOT,
    "NovaServers.suspend_and_resume_server": _BOOT,
    "NovaServices.list_services": {},
}


def run(regex: str, clouds: Path, directory: Path, json_file: Path | None) -> int:
    """``regex``: which scenarios, by their names. Rally's files, with all that it measured, are in ``directory``."""
    excluded = exclusions.of_suite("rally")
    counts = Counts(excluded=Counter(excluded.values()))
    wanted = {name: SCENARIOS[name] for name in SCENARIOS if re.search(regex, name) and name not in excluded}
    for name, error in _outcomes(wanted, clouds, directory).items():
        print(f"{'fail' if error else 'success':8}{name}")
        if error:
            counts.failed[name] = error
        else:
            counts.passed += 1
    return counts.report(json_file)


def _outcomes(wanted: dict[str, dict[str, Any]], clouds: Path, directory: Path) -> dict[str, str]:
    """Scenario -> its first error, "" if all its repetitions succeeded."""
    spec, task, report = directory / "cloud.json", directory / "task.json", directory / "report.json"
    spec.touch(mode=0o600)
    spec.write_text(json.dumps({"existing@openstack": _credentials(clouds)}))
    subtasks = [_subtask(name, arguments) for name, arguments in wanted.items()]
    task.write_text(json.dumps({"version": 2, "title": "Nova", "subtasks": subtasks}))
    environment = TOOL.environment(clouds, directory)
    with (directory / "rally.log").open("wb") as log:
        for words in (
            ("db", "create"),
            ("env", "create", "--name", "causeway", "--spec", spec),
            ("task", "start", task),
            ("task", "report", "--json", "--out", report),
        ):
            _run(directory, environment, words, log)
    found = dict.fromkeys(wanted, f"it did not run: {log.name} says why")
    for workload in _workloads(json.loads(report.read_text()) if report.exists() else {"tasks": []}):
        (name,) = workload["scenario"]
        errors = ["\n".join(map(str, done["error"])) for done in workload["data"] if done["error"]]
        if errors or len(workload["data"]) == TIMES:
            found[name] = errors[0] if errors else ""
    return found


def _subtask(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    contexts: dict[str, Any] = {"users": {"tenants": 2, "users_per_tenant": 1}}
    if name in NEED_NETWORK:
        contexts["network"] = {}
    runner = {"constant": {"times": TIMES, "concurrency": AT_ONCE}}
    return {"title": name, "scenario": {name: arguments}, "runner": runner, "contexts": contexts}


def _run(directory: Path, environment: dict[str, str], words: tuple[str | Path, ...], log: BinaryIO) -> None:
    """Runs Rally with a database of its own. It ends with another status than 0 if a scenario failed: its report says which."""
    options = directory / "rally.conf"
    options.write_text(f"[database]\nconnection = sqlite:///{directory}/rally.db\n")
    command = [TOOL.bin / "rally", "--config-file", options, *words]
    subprocess.run(command, env=environment, stdout=log, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)


def _workloads(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for task in report["tasks"]:
        for subtask in task["subtasks"]:
            yield from subtask["workloads"]


def _credentials(clouds: Path) -> dict[str, Any]:
    admin = yaml.safe_load(clouds.read_text())["clouds"][ADMIN]
    names = ("username", "password", "project_name")
    return {
        "auth_url": admin["auth"]["auth_url"],
        "region_name": admin["region_name"],
        "admin": {name: admin["auth"][name] for name in names}
        | {"user_domain_name": "Default", "project_domain_name": "Default"},
    }

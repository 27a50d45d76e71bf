"""The clouds that the functional suite runs on by URL, one after the other.

Each shape is a group of options that several modules of the suite ask for (their ``CLOUD``, ``cloud.option``). The first one is
as most tests want it; each further one runs what was skipped so far because it needs another cloud (`suite_runs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.functional.processes.consumer import VERSIONED
from tests.functional.processes.suite_cloud import SUITE_OPTIONS
from tests.functional.servers import pinned_cloud, sriov_cloud
from tests.functional.servers.choosing_hosts.test_group_moves import EVEN
from tests.functional.servers.sriov import test_sriov_bandwidth

Options = Mapping[str, Mapping[str, Any]]
# What fails is undone at once and for good.
AT_ONCE: Options = {
    "moves": {"patience": 0.0, "patience_while_off": 0.0, "whole_tries": 1, "stuck_retry_interval": 2.0},
    "DEFAULT": {"vif_plugging_timeout": 5, "long_rpc_timeout": 20},
}
# Disks travel when their guests are off.
WHILE_OFF: Options = {"moves": {"warm": "never"}}
SAME_HOST: Options = {"DEFAULT": {"allow_resize_to_same_host": True}}
# What operators may want otherwise; hosts report when they start, and then no more.
SETTINGS: Options = {
    "DEFAULT": {"report_interval": 3600, "service_down_time": 7200, "shelved_offload_time": -1},
    "scheduler": {"move_keeps_availability_zone": False},
    "cinder": {"cross_az_attach": False},
    "quota": {"ram": -1},
}


def merged(*several: Options) -> dict[str, dict[str, Any]]:
    """One set of options; later ones win."""
    found: dict[str, dict[str, Any]] = {}
    for options in several:
        for group, values in options.items():
            found[group] = {**found.get(group, {}), **values}
    return found


@dataclass(frozen=True)
class Shape:
    """Two cells of simulated hosts, and the options in which they differ from the first shape's."""

    name: str
    options: Options = field(default_factory=dict)
    hosts_per_cell: int = 2

    def arguments(self) -> dict[str, Any]:
        """Those of a `SuiteDeployment`."""
        hosts = range(1, self.hosts_per_cell + 1)
        cells = {cell: [f"{cell}-host{number}" for number in hosts] for cell in ("cell1", "cell2")}
        return {"cells": cells, "options": merged(SUITE_OPTIONS, self.options)}


# Nova's: an embedded cloud's lets everybody move to other cells.
DEFAULT_POLICY = Path(__file__).with_name("default-policy.yaml")
SHAPES = (
    Shape("plain"),
    Shape("at once", AT_ONCE),
    Shape("while off", WHILE_OFF),
    Shape("at once while off", merged(AT_ONCE, WHILE_OFF, VERSIONED)),
    Shape("through images", {"moves": {"direct": "never"}}),
    Shape("settings", SETTINGS),
    Shape("late", {"moves": {"first_pause": 3600.0, "stuck_retry_interval": 3600.0}}),
    Shape("one host", SAME_HOST, hosts_per_cell=1),
    Shape("one host at once", merged(AT_ONCE, SAME_HOST), hosts_per_cell=1),
    Shape("three hosts", {"filter_scheduler": EVEN, "quota": {"instances": -1, "cores": -1}}, hosts_per_cell=3),
    Shape("four hosts", merged(AT_ONCE, {"scheduler": {"max_attempts": 2}}), hosts_per_cell=4),
    Shape("policy", {"oslo_policy": {"policy_file": str(DEFAULT_POLICY)}}),
    Shape("NUMA", merged(AT_ONCE, pinned_cloud.OVERRIDES)),
    Shape("SR-IOV", merged(AT_ONCE, sriov_cloud.OVERRIDES)),
    Shape("SR-IOV on one network", merged(AT_ONCE, test_sriov_bandwidth.OVERRIDES)),
)

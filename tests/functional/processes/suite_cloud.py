"""A deployment that the functional suite runs on by URL: with what a new embedded cloud has in it, and described in a file.

The suite runs as its users run it, ``pytest --cloud DIRECTORY/cloud.yaml tests/functional/servers``, in a process of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from causeway.embedded.content import FLAVORS, GENERATION
from tests.functional.processes.deployment import CONDUCTORS, OPTIONS, Deployment
from tests.of_one_process import SUITE

CELLS = {cell: [f"{cell}-host1", f"{cell}-host2"] for cell in ("cell1", "cell2")}
# What hosts, zones and aggregates are counts at once, as where scheduler and API are one process.
SUITE_OPTIONS = {
    **OPTIONS,
    "DEFAULT": {**OPTIONS["DEFAULT"], "rescue_timeout": 3600},
    "scheduler": {"host_state_max_age": 0},
}


def stock(admin: Any, cells: Sequence[Sequence[str]]) -> None:
    """What a new embedded cloud has, made over the APIs: flavors of two generations, aggregates, an image, a network."""
    for flavor in FLAVORS:
        made = admin.compute.create_flavor(
            id=flavor.flavorid, name=flavor.name, vcpus=flavor.vcpus, ram=flavor.memory_mb, disk=flavor.root_gb
        )
        if flavor.extra_specs:
            admin.compute.create_flavor_extra_specs(made, flavor.extra_specs)
    for generation, hosts in (("1", cells[0]), ("2", [host for each in cells[1:] for host in each])):
        aggregate = admin.compute.create_aggregate(name=f"gen{generation}")
        admin.compute.set_aggregate_metadata(aggregate, {GENERATION.partition(":")[2]: generation})
        for host in hosts:
            admin.compute.add_host_to_aggregate(aggregate, host)
    content = b"A disk image for simulated hosts.\n".ljust(4096, b"\0")
    admin.image.create_image(name="demo", visibility="public", disk_format="raw", container_format="bare", data=content)
    network = admin.network.create_network(name="demo-net", shared=True)
    admin.network.create_subnet(name="demo-subnet", network_id=network.id, ip_version=4, cidr="10.0.0.0/24")
    if "multiattach" not in {each.name for each in admin.block_storage.types()}:
        made = admin.block_storage.create_type(name="multiattach")
        admin.block_storage.update_type_extra_specs(made, multiattach="<is> True")


def describe(deployment: Deployment) -> Path:
    """Writes cloud.yaml (see `deployed_cloud`) and returns where it is."""
    directory, devcloud = deployment.directory, deployment.directory / "devcloud"
    path = directory / "cloud.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "clouds": "clouds.yaml",
                "users": {"demo": "causeway", "admin": "causeway-admin"},
                "configuration": ["services.conf", "common.conf", "databases.conf", f"{CONDUCTORS[0]}.conf"],
                "state": ".",
                "logs": ".",
                "hosts": deployment.hosts,
                "faults": "faults.yaml",
                **{
                    f"devcloud_{kind}": f"devcloud/devcloud-{kind}.yaml" if devcloud.is_dir() else None
                    for kind in ("faults", "switches")
                },
            }
        )
    )
    return path


class SuiteDeployment(Deployment):
    """Every role a process; devcloud around unless an argument says otherwise."""

    def __init__(self, directory: Path, rabbit: str, **options: Any) -> None:
        super().__init__(
            directory, rabbit, **{"cells": CELLS, "options": SUITE_OPTIONS, "cell_conductors": True, **options}
        )

    def _fill(self) -> None:
        self.member, self.admin = self.connection("causeway"), self.connection("causeway-admin")
        stock(
            self.admin,
            [[host for host in self.hosts if self.hosts[host] == cell] for cell in sorted({*self.hosts.values()})],
        )
        describe(self)


def wait_for_key() -> None:
    """For a developer: ``python -m tests.functional.processes.suite_cloud DIRECTORY`` keeps a cloud until a key is pressed."""
    from tests.functional.processes.rabbit import rabbit

    directory = Path(sys.argv[1]).resolve()
    directory.mkdir(parents=True)
    with rabbit(directory / "rabbit") as queue:
        cloud = SuiteDeployment(directory, queue)
        try:
            cloud.start()
            print(f"ready: pytest --cloud {directory}/cloud.yaml {' '.join(SUITE)}", flush=True)
            sys.stdin.readline()
        finally:
            cloud.stop()


if __name__ == "__main__":
    wait_for_key()

"""A cloud with what the tests of clients want to be there: of ``causeway up``, or of many processes beside the real services."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from configparser import ConfigParser
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import openstack
import yaml

from causeway.conf.scheduler import FILTERS
from causeway.embedded.settings import StateDir
from causeway.virt.lab.hosts import Lab
from tests.integration.tempest.stack import CELLS, stack

# As the tests know them from DevStack: vCPUs, RAM in MiB, disk in GiB.
IMAGE = "cirros-0-uec"
FLAVORS = {
    "m1.tiny": (1, 512, 1),
    "m1.small": (1, 2048, 20),
    "m1.medium": (2, 4096, 40),
    "m1.large": (4, 8192, 80),
    "m1.xlarge": (8, 16384, 160),
}
PRIVATE, PUBLIC = "private", "public"
# In the clouds.yaml.
MEMBER, ADMIN = "devstack", "devstack-admin"
# What networks to the outside are made of in the real network service.
PHYSICAL = {"provider_network_type": "flat", "provider_physical_network": "physical"}
_ENDS_WITHIN = 60.0
# Some tests make flavors whose extra specs no host has.
_NOT_ON_IN_NOVA = "AggregateInstanceExtraSpecsFilter"
_OPTIONS: dict[str, dict[str, Any]] = {
    # Horizon, at whatever port, shows consoles in its pages.
    "console": {"frame_ancestors": "http://127.0.0.1:*"},
    "quota": {"instances": 100, "cores": 200, "ram": 102_400},
    "filter_scheduler": {"enabled_filters": ",".join(name for name in FILTERS if name != _NOT_ON_IN_NOVA)},
}


def connected(clouds: Path, name: str) -> openstack.connection.Connection:
    """A connection with what a clouds.yaml has under ``name``; it is closed by the caller."""
    found: dict[str, Any] = yaml.safe_load(clouds.read_text())["clouds"][name]
    return openstack.connect(load_envvars=False, load_yaml_config=False, **_connection(found))


@contextmanager
def cloud_beside(directory: Path, database: str = "postgresql") -> Iterator[Path]:
    """As `cloud`, beside the real Keystone, Glance, Neutron, Cinder and Placement; hosts are simulated."""
    with stack(directory, database, CELLS, _OPTIONS):
        clients = directory / "clients"
        clients.mkdir()
        yield _prepare(directory / "clouds.yaml", clients / "clouds.yaml", "network", PHYSICAL)


@contextmanager
def cloud(directory: Path) -> Iterator[Path]:
    """Gives its clouds.yaml, in a folder for the clients, with the names that the tests know; everything has ended afterwards."""
    with _up(directory, "--hosts-per-cell", "2") as clouds:
        yield clouds


@contextmanager
def cloud_of_guests(directory: Path) -> Iterator[Path]:
    """As `cloud`, with one host, whose guests are real (image ``demo``)."""
    try:
        with _up(directory, "--cells", "1", "--driver", "libvirt") as clouds:
            yield clouds
    finally:
        Lab(StateDir(directory / "state").lab).stop(keep_guests=False)


@contextmanager
def _up(directory: Path, *more: str) -> Iterator[Path]:
    state, options = directory / "state", directory / "causeway.conf"
    wanted = ConfigParser()
    wanted.read_dict(_OPTIONS)
    with options.open("w") as file:
        wanted.write(file)
    command: list[str | Path] = [
        *(Path(sys.executable).with_name("causeway"), "up", "--state-dir", state, "--port", "0"),
        *("--config-file", options),
        *more,
    ]
    with (directory / "cloud.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        assert process.stdout is not None
        try:
            if not process.stdout.readline().startswith("ready: "):
                raise RuntimeError(f"causeway up did not become ready; what it said is in {log.name}")
            yield _prepare(state / "clouds.yaml", directory / "clouds.yaml", "demo-net")
        finally:
            process.terminate()
            process.wait(_ENDS_WITHIN)


def _prepare(given: Path, wanted: Path, private: str, outside: Mapping[str, str] | None = None) -> Path:
    """``private``: the one network that servers of users get; ``outside``: more of the external one."""
    clouds: dict[str, Any] = yaml.safe_load(given.read_text())["clouds"]
    member, admin = clouds["causeway"], clouds["causeway-admin"]
    with openstack.connect(load_envvars=False, load_yaml_config=False, **_connection(admin)) as connection:
        for flavor in list(connection.compute.flavors()):
            connection.compute.delete_flavor(flavor)
        for name, (vcpus, ram, disk) in FLAVORS.items():
            connection.compute.create_flavor(name=name, id=name, vcpus=vcpus, ram=ram, disk=disk)
        connection.image.create_image(
            name=IMAGE, disk_format="raw", container_format="bare", visibility="public", data=bytes(4096)
        )
        # Of all users: those that tests make have no other, and the real network service makes none by itself.
        inside = connection.network.update_network(
            connection.network.find_network(private), name=PRIVATE, is_shared=True
        )
        owner = connection.identity.find_project("service")
        network = connection.network.create_network(
            name=PUBLIC, is_router_external=True, project_id=owner.id, **(outside or {})
        )
        connection.network.create_subnet(network_id=network.id, ip_version=4, cidr="192.0.2.0/24")
        # Floating IPs reach the servers of a network through a router.
        router = connection.network.create_router(
            name="router", project_id=inside.project_id, external_gateway_info={"network_id": network.id}
        )
        connection.network.add_interface_to_router(router, subnet_id=inside.subnet_ids[0])
        password = secrets.token_hex(8)
        domain = {"domain_id": "default"}
        project = connection.identity.create_project(name="alt_demo", **domain)
        user = connection.identity.create_user(
            name="alt_demo", password=password, default_project_id=project.id, **domain
        )
        role = connection.identity.find_role("member")
        connection.identity.assign_project_role_to_user(project, user, role)
    alt = member | {"auth": member["auth"] | {"username": "alt_demo", "password": password, "project_name": "alt_demo"}}
    named = {
        MEMBER: member,
        "devstack-alt": alt,
        ADMIN: admin,
        "devstack-system-admin": admin,
        "functional_admin": admin,
    }
    wanted.touch(mode=0o600)
    wanted.write_text(yaml.safe_dump({"clouds": named}))
    return wanted


def _connection(found: dict[str, Any]) -> dict[str, Any]:
    return {"auth": found["auth"], "region_name": found["region_name"]}

"""What Debian finds at its first boot: its firmware, its data source, and all that cloud-init makes of that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from causeway.virt.libvirt.commands import run
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.integration.operating_system.debian_servers import Debian, Debians

USER_DATA = """#cloud-config
write_files:
- {path: /etc/written, content: by user data}
runcmd:
- [sh, -c, 'echo "$(hostname) ran" > /etc/ran']
"""


@dataclass(frozen=True)
class Way:
    """How a server boots, and how it learns who it is. ``source``: as cloud-init calls it."""

    image: str
    config_drive: bool
    firmware: str
    source: str


WAYS = {
    "bios-config-drive": Way("debian", True, "bios", "DataSourceConfigDrive"),
    "uefi-network": Way("debian-uefi", False, "uefi", "DataSourceOpenStackLocal"),
}


@pytest.fixture(scope="module")
def network(cloud: AuditedCloud) -> Iterator[Any]:
    """A second one."""
    made = cloud.member.network.create_network(name="second")
    cloud.member.network.create_subnet(network_id=made.id, ip_version=4, cidr="10.1.0.0/24", name="second")
    return made


@pytest.fixture(scope="module")
def booted(cloud: AuditedCloud, debians: Debians, network: Any) -> dict[str, Debian]:
    """One server for each way; they boot at the same time."""
    networks = [{"uuid": cloud.network_id}, {"uuid": network.id}]
    found = {
        name: debians.requested(
            name, image=way.image, config_drive=way.config_drive, networks=networks, user_data=USER_DATA
        )
        for name, way in WAYS.items()
    }
    for debian in found.values():
        cloud.wait(debian.server, "ACTIVE")
        debian.is_booted()
    return found


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def debian(booted: dict[str, Debian], way: str) -> Debian:
    return booted[way]


def test_debian_boots_by_the_firmware_of_its_image(debian: Debian, way: str) -> None:
    assert debian.run("test -d /sys/firmware/efi && echo uefi || echo bios") == WAYS[way].firmware


def test_cloud_init_finds_its_data_without_a_fault(debian: Debian, way: str) -> None:
    result = json.loads(debian.run("cat /run/cloud-init/result.json"))["v1"]
    assert result["errors"] == []
    assert result["datasource"].startswith(WAYS[way].source)
    assert debian.run("cloud-init query instance_id") == debian.server.id


def test_debian_has_its_name_and_the_key_of_its_user(debian: Debian, way: str) -> None:
    assert debian.run("hostname") == way
    keys = debian.run("cat .ssh/authorized_keys").splitlines()
    assert [key.split()[:2] for key in keys] == [debian.key.with_suffix(".pub").read_text().split()[:2]]


def test_the_password_of_the_answer_is_on_the_config_drive_and_nowhere_else(debian: Debian, way: str) -> None:
    data = json.loads(debian.run("sudo cat /run/cloud-init/instance-data-sensitive.json"))["ds"]["meta_data"]
    assert debian.server.admin_password
    assert data.get("admin_pass") == (debian.server.admin_password if WAYS[way].config_drive else None)


def test_user_data_ran(debian: Debian, way: str) -> None:
    assert debian.run("cat /etc/written /etc/ran") == f"by user data{way} ran"


def test_every_port_has_its_address(debian: Debian) -> None:
    wanted = {
        (port.mac_address, port.fixed_ips[0]["ip_address"])
        for port in debian.cloud.member.network.ports(device_id=debian.server.id)
    }
    assert len(wanted) == 2
    links = json.loads(debian.run("ip -json address show"))
    found = {
        (link["address"], address["local"])
        for link in links
        for address in link["addr_info"]
        if (address["family"], address["scope"]) == ("inet", "global")
    }
    assert found == wanted


def test_the_console_log_has_the_boot_from_its_beginning_to_the_login(debian: Debian, way: str) -> None:
    said = debian.console()
    assert said.index("Linux version") < said.index("Cloud-init v.") < said.index(f"{way} login:")


def test_a_password_is_set_by_the_guest_agent(debian: Debian) -> None:
    shadow = "sudo getent shadow root | cut -d: -f2"
    before = debian.run(shadow)
    debian.cloud.member.compute.change_server_password(debian.server.id, "known-to-nobody")
    debian.cloud.wait(debian.server, "ACTIVE")
    after = debian.run(shadow)
    assert after != before
    assert is_of("known-to-nobody", after)


def is_of(password: str, kept: str) -> bool:
    """Whether this is what a system keeps of the password. Its own library says so, and here rather than in the slow guest."""
    return run("perl", "-e", "print crypt($ARGV[0], $ARGV[1])", password, kept) == kept

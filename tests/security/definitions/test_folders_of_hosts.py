"""Two hosts that have one folder of disks would delete each other's: the second one does not start."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from causeway.errors import Misconfigured
from causeway.virt.folder_owner import OWNER, claim
from causeway.virt.simulated.driver import SimulatedDriver
from tests.integration.libvirt.lab_guests import Cloud

SERVER = "5f3c2f5e-0a5d-4a3e-9a55-1d5d6f1f5a01"


def test_a_host_does_not_start_with_the_folder_of_another(tmp_path: Path) -> None:
    first = SimulatedDriver("host1", tmp_path)
    first.start()
    disk = tmp_path / "instances" / SERVER / "disk"
    disk.parent.mkdir()
    disk.write_text("of a server at host1")
    with pytest.raises(Misconfigured, match=r"belongs to host 'host1', and this host is 'host2'.*write 'host2' into"):
        SimulatedDriver("host2", tmp_path).start()
    assert disk.read_text() == "of a server at host1"
    first.close()
    again = SimulatedDriver("host1", tmp_path)
    again.start()
    again.close()
    # Its operator has renamed it, and does what the error says.
    (tmp_path / OWNER).write_text("host2\n")
    renamed = SimulatedDriver("host2", tmp_path)
    renamed.start()
    renamed.close()


@pytest.mark.libvirt
def test_a_host_with_libvirt_does_not_start_with_the_folder_of_another(cloud: Cloud, tmp_path: Path) -> None:
    guest = cloud.guest()
    guest.spawn()
    first, second = cloud.drivers
    from causeway.virt.libvirt.driver import LibvirtDriver

    shared = LibvirtDriver(
        second._connection._uri, "host2", first._instances_dir, virt_type="qemu", probe_cache=tmp_path / "virt.json"
    )
    with pytest.raises(Misconfigured, match=f"belongs to host '{first._hostname}'"):
        shared.start()
    assert first._disks.root(guest.uuid).exists()


def test_of_hosts_that_start_at_once_one_gets_the_folder(tmp_path: Path) -> None:
    hosts = [f"host{number}" for number in range(8)]
    together = Barrier(len(hosts))

    def start(host: str) -> bool:
        together.wait()
        try:
            claim(tmp_path / "instances", host)
        except Misconfigured:
            return False
        return True

    with ThreadPoolExecutor(len(hosts)) as pool:
        got = dict(zip(hosts, pool.map(start, hosts), strict=True))
    owner = (tmp_path / "instances" / "owner").read_text().strip()
    assert [host for host, has_it in got.items() if has_it] == [owner]
    assert [path.name for path in (tmp_path / "instances").iterdir()] == ["owner"]


@pytest.mark.parametrize("content", ["", "host1 and something\n", "../host1", "\xff"])
def test_a_folder_whose_owner_is_not_known_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "owner").write_text(content, encoding="latin-1")
    with pytest.raises(Misconfigured):
        claim(tmp_path, "host1")

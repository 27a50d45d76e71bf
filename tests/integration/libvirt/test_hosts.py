"""Hosts that die and come back, and the network between them."""

from __future__ import annotations

import os
import select
import signal
import sys
from pathlib import Path

import pytest

from causeway.errors import ClaimRefused, GuestFailed
from causeway.model.states import PowerState
from causeway.virt.lab.certificates import Authority
from causeway.virt.lab.commands import namespaces
from causeway.virt.lab.guest_image import GuestImage
from causeway.virt.lab.hosts import Lab, LibvirtEndpoint, missing
from causeway.virt.libvirt.commands import run
from tests.integration.libvirt.lab_guests import Cloud, Net
from tests.process_trees import stop

if missing() is None:
    from causeway.virt.lab.drivers import driver_of
    from causeway.virt.libvirt.driver import LibvirtDriver


def test_guests_of_one_network_reach_one_another_across_hosts(cloud: Cloud, network: Net) -> None:
    first = cloud.guest(host=0, vifs=[network.port()])
    first.driver.spawn(first.spec(first.new_disk()))
    second = cloud.guest(host=1, vifs=[network.port()])
    address = first.vifs[0].fixed_ips[0].address
    second.config_drive = {"openstack/latest/user_data": f"#!/bin/sh\nping -c 3 -w 20 {address}\n".encode()}
    first.wait_for_boot()
    second.spawn()
    second.wait(lambda said: "CAUSEWAY-USER-DATA" in said.text)
    assert "CAUSEWAY-USER-DATA exit=0" in second.console().text


def test_networks_do_not_reach_one_another(cloud: Cloud, network: Net) -> None:
    guest = cloud.guest(vifs=[network.port()])
    guest.spawn()
    other = Net(network.lab)
    network.sync_with(other)
    address = guest.vifs[0].fixed_ips[0].address
    assert network.lab.network.ping(network.id, address).answered
    assert network.lab.network.ping(other.id, address, 1).received == 0


def test_killed_libvirtd_comes_back_and_guests_continue(
    cloud: Cloud, endpoints: dict[str, LibvirtEndpoint], lab_dir: Path
) -> None:
    guest = cloud.guest()
    guest.spawn()
    kill_libvirtd(lab_dir / "hosts" / endpoints["cell1-host1"].host)

    # The same driver: it has to notice, and to connect again.
    assert guest.driver.inspect(guest.uuid).power_state == PowerState.RUNNING
    guest.driver.power_off(guest.uuid, timeout=60)
    assert "CAUSEWAY-SHUTDOWN" in guest.console().text
    assert guest.driver.power_on(guest.spec()) == PowerState.RUNNING
    assert guest.wait_for_boot(2).last("CAUSEWAY-GUEST")["boot"] == "2"


def test_hypervisors_reach_one_another_by_name_and_certificate(
    endpoints: dict[str, LibvirtEndpoint], lab_dir: Path
) -> None:
    first, second = endpoints["cell1-host1"], endpoints["cell2-host1"]
    for here, there in ((first, second), (second, first)):
        folder = lab_dir / "hosts" / here.host
        retries = run("ip", "netns", "exec", here.netns, "cat", "/proc/sys/net/ipv4/tcp_retries2")
        assert int(retries) < 8
        for name in (there.address, there.host):
            assert opened(folder, here, f"qemu+tls://{name}/system?pkipath={folder / 'etc' / 'pki'}") == "ok"
    # Another lab's authority is a stranger's, and nobody comes in without a certificate.
    folder, stranger = lab_dir / "hosts" / first.host, lab_dir / "stranger"
    Authority(lab_dir / "strangers-authority").ensure(first.host, first.address, stranger)
    assert opened(folder, first, f"qemu+tls://{second.address}/system?no_verify=1&pkipath={stranger}") != "ok"
    assert "refused" in opened(folder, first, f"qemu+tcp://{second.address}/system")


def opened(folder: Path, here: LibvirtEndpoint, uri: str) -> str:
    """What comes of opening it in the host's network, with the host's names."""
    script = (
        "import libvirt, sys\n"
        "libvirt.registerErrorHandler(lambda *_: None, None)\n"
        "try:\n    libvirt.open(sys.argv[1]).getVersion()\n    print('ok')\n"
        "except libvirt.libvirtError as error:\n    print(error)\n"
    )
    inside = 'mount --bind "$1" /etc/hosts && exec "$2" -c "$3" "$4"'
    words = ("ip", "netns", "exec", here.netns, "sh", "-c", inside, "sh", folder / "hosts", sys.executable, script, uri)
    return run(*words).strip()


def test_restarted_control_plane_finds_hosts_and_guests(
    cloud: Cloud, endpoints: dict[str, LibvirtEndpoint], lab_dir: Path
) -> None:
    guest = cloud.guest()
    guest.driver.spawn(guest.spec(guest.new_disk()))
    found = Lab(lab_dir).start(list(endpoints))
    driver = driver_of(found["cell1-host1"], virt_type="qemu")
    driver.start()
    try:
        assert driver.list_guests()[guest.uuid] == PowerState.RUNNING
    finally:
        driver.close()
    assert found["cell1-host1"].uri == endpoints["cell1-host1"].uri
    assert len(found["cell1-host1"].uri) < 140


def kill_libvirtd(folder: Path) -> None:
    pid = int((folder / "libvirtd.pid").read_text())
    handle = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([handle], [], [], 10)[0], "libvirtd does not die"
    os.close(handle)


def test_hypervisor_that_hangs_is_an_error_and_not_a_hang(
    cloud: Cloud, endpoints: dict[str, LibvirtEndpoint], lab_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = cloud.guest()
    endpoint = endpoints["cell2-host1"]
    driver = LibvirtDriver(endpoint.uri, endpoint.host, endpoint.instances_dir, virt_type="qemu")
    driver.start()
    pid = int((lab_dir / "hosts" / endpoint.host / "libvirtd.pid").read_text())
    stop(pid)
    try:
        with monkeypatch.context() as patched, pytest.raises(GuestFailed, match="did not answer within 1 s"):
            patched.setattr(driver._connection, "_timeout", 1.0)
            driver.inspect(guest.uuid)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert driver.inspect(guest.uuid).power_state is None
    driver.close()


def test_stopped_lab_leaves_nothing_but_disks_and_another_lab_alone(
    tmp_path: Path, endpoints: dict[str, LibvirtEndpoint], guest_image: GuestImage
) -> None:
    other = Lab(tmp_path)
    try:
        endpoint = other.start(["cell1-host1"])["cell1-host1"]
        driver = driver_of(endpoint, virt_type="qemu")
        driver.start()
        guest = Cloud([driver], guest_image, tmp_path, [endpoint.instances_dir]).guest()
        driver.spawn(guest.spec(guest.new_disk()))
        driver.close()
        assert endpoint.netns in namespaces()
    finally:
        other.stop(keep_guests=False)
    other.stop(keep_guests=False)
    assert endpoint.netns not in namespaces()
    assert (endpoint.instances_dir / guest.uuid / "disk").exists()
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if names(path, f"{tmp_path}/")]
    assert endpoints["cell1-host1"].netns in namespaces()


def names(path: Path, text: str) -> bool:
    try:
        return text in path.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    "connection_info",
    [
        {},
        {"driver_volume_type": "telepathy", "data": {}},
        {"driver_volume_type": "local", "data": {"device_path": "/nowhere/volume"}},
    ],
)
def test_volume_that_a_host_cannot_open_is_refused_before_anything_moves(
    cloud: Cloud, connection_info: dict[str, object]
) -> None:
    with pytest.raises(ClaimRefused):
        cloud.drivers[0].check_volume_connectable(connection_info)

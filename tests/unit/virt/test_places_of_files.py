"""Where a libvirt host keeps its guests' files, and mounts volumes on NFS: as its options say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

pytest.importorskip("libvirt")

from os_brick.initiator import connector
from oslo_config import cfg

from causeway.cli.compute import _driver
from causeway.conf import new_config, paths
from causeway.errors import Misconfigured
from causeway.virt import folder_owner
from causeway.virt.libvirt.driver import LibvirtDriver

SERVER = "5f3c2f5e-0a5d-4a3e-9a55-1d5d6f1f5a01"


@pytest.fixture(autouse=True)
def _restored_options() -> Iterator[None]:
    """oslo.config's own object, which a libvirt host fills for libraries, as it was."""
    yield
    cfg.CONF.clear()


def driver_of(tmp_path: Path, default: str = "", libvirt: str = "", host: str = "host1") -> LibvirtDriver:
    file = tmp_path / f"{host}.conf"
    file.write_text(
        f"[DEFAULT]\nhost = {host}\nstate_path = {tmp_path}/state\ncompute_driver = libvirt.LibvirtDriver\n{default}"
        f"\n[libvirt]\nvirt_type = qemu\n{libvirt}\n"
    )
    conf = new_config(config_files=[file])
    paths.resolve(conf)
    return cast(LibvirtDriver, _driver(conf, Path(conf.state_path) / "hosts" / host))


def mount_base(driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where os-brick mounts shares."""
    asked: dict[str, Any] = {}
    monkeypatch.setattr(connector.InitiatorConnector, "factory", lambda *_given, **options: asked.update(options))
    driver._volumes._connector("nfs")
    return str(asked["nfs_mount_point_base"])


def test_without_options_guests_and_mounts_are_in_the_folder_of_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = driver_of(tmp_path)
    assert driver.own_folders() == [tmp_path / "state/hosts/host1/instances"]
    assert mount_base(driver, monkeypatch) == str(tmp_path / "state/hosts/host1/instances/mnt")


def test_guests_and_mounts_are_where_nova_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = driver_of(tmp_path, "instances_path = $state_path/instances", "nfs_mount_point_base = $state_path/mnt")
    assert driver.own_folders() == [tmp_path / "state/instances"]
    assert driver._disks.folder(SERVER) == tmp_path / "state/instances" / SERVER
    assert mount_base(driver, monkeypatch) == str(tmp_path / "state/mnt")


def test_mounts_are_beside_the_guests_unless_their_place_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = driver_of(tmp_path, f"instances_path = {tmp_path}/guests")
    assert mount_base(driver, monkeypatch) == str(tmp_path / "guests/mnt")


def test_two_hosts_of_a_machine_do_not_share_the_folder_of_guests(tmp_path: Path) -> None:
    folder_owner.claim(tmp_path / "guests", "host1")
    second = driver_of(tmp_path, f"instances_path = {tmp_path}/guests", host="host2")
    with pytest.raises(Misconfigured, match=r"guests belongs to host 'host1'.*delete each other's disks"):
        second.start()


def test_two_hosts_of_a_machine_do_not_share_their_mounts(tmp_path: Path) -> None:
    folder_owner.claim(tmp_path / "mnt", "host1")
    second = driver_of(tmp_path, libvirt=f"nfs_mount_point_base = {tmp_path}/mnt", host="host2")
    with pytest.raises(Misconfigured, match=r"mnt belongs to host 'host1'.*unmount each other's volumes"):
        second.start()

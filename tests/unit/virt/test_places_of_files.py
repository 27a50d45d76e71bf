"""Where a libvirt host keeps its guests' files, and mounts volumes on NFS: as its options say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast
from unittest.mock import MagicMock

import pytest

pytest.importorskip("libvirt")

from os_brick.initiator import connector
from oslo_config import cfg

from causeway.cli import compute, processes
from causeway.compute.service import ComputeService
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


def conf_of(tmp_path: Path, default: str = "", libvirt: str = "", host: str = "host1") -> cfg.ConfigOpts:
    file = tmp_path / f"{host}.conf"
    file.write_text(
        f"[DEFAULT]\nhost = {host}\nstate_path = {tmp_path}/state\ncompute_driver = libvirt.LibvirtDriver\n{default}"
        f"\n[libvirt]\nvirt_type = qemu\n{libvirt}\n"
    )
    conf = new_config(config_files=[file])
    paths.resolve(conf)
    return conf


def driver_of(tmp_path: Path, default: str = "", libvirt: str = "", host: str = "host1") -> LibvirtDriver:
    conf = conf_of(tmp_path, default, libvirt, host)
    return cast(LibvirtDriver, compute._driver(conf, Path(conf.state_path) / "hosts" / host))


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


@pytest.mark.parametrize(("given", "expected"), [("", None), ("instances_path = {}/guests", "{}/guests/causeway")])
def test_disks_on_their_way_are_on_the_file_system_of_the_guests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, expected: str | None
) -> None:
    made = MagicMock()
    monkeypatch.setattr(compute, "make_compute", made)
    monkeypatch.setattr(processes, "around", lambda *_given: None)
    monkeypatch.setattr(processes, "expose_metrics", lambda *_given: None)
    with ExitStack() as cleanup:
        compute._start_compute(conf_of(tmp_path, given.format(tmp_path)), cleanup)
    assert made.call_args.args[-2:] == (
        tmp_path / "state/hosts/host1",
        Path(expected.format(tmp_path)) if expected else None,
    )


def test_images_and_transfers_of_a_host_are_where_it_has_room_for_disks(tmp_path: Path) -> None:
    conf, given = conf_of(tmp_path), MagicMock()
    service = ComputeService(
        "host1",
        conf,
        driver=given,
        transport=given,
        placement=given,
        images=given,
        network=given,
        volumes=given,
        vendordata=given,
        state_dir=tmp_path / "state",
        disks_dir=tmp_path / "guests",
    )
    assert service.host.image_cache.directory == tmp_path / "guests/_base"
    for kind in ("offers", "rounds", "copies"):
        assert not (tmp_path / "state" / kind).exists()

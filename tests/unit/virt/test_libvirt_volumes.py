"""Volumes that several guests of one host have: connected with the first of them, disconnected with the last."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("libvirt")

from causeway.model.block_device import BlockDevice
from causeway.virt.libvirt.guest_xml.domain_xml import device_of_serial, disk_xml
from causeway.virt.libvirt.storage.shares import Shares
from causeway.virt.libvirt.storage.volumes import Volumes
from tests.unit.virt.ceph_host import no_ceph, no_secrets

SHARED, OWN = "0b4a3c0e-6d0f-4b3c-9d6b-0a3f1a1f0001", "0b4a3c0e-6d0f-4b3c-9d6b-0a3f1a1f0002"


class Connector:
    """What os-brick is asked to do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connected: list[str] = []

    def connect_volume(self, data: dict[str, Any]) -> dict[str, Any]:
        self.connected.append(data["id"])
        return {"path": str(self.path), "type": "block"}

    def disconnect_volume(self, data: dict[str, Any], *_given: Any, **_more: Any) -> None:
        self.connected = [each for each in self.connected if each != data["id"]]


@pytest.fixture
def connector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Connector:
    path = tmp_path / "device"
    path.touch()
    found = Connector(path)
    monkeypatch.setattr(Volumes, "_connector", lambda *_given: found)
    return found


@pytest.fixture
def defined() -> dict[str, set[str]]:
    """volume -> the guests whose definitions have it."""
    return {}


@pytest.fixture
def volumes(tmp_path: Path, defined: dict[str, set[str]]) -> Volumes:
    return Volumes(
        "host1",
        Shares(tmp_path / "mnt", lambda name: defined.get(name, set())),
        tmp_path,
        lambda volume_id: defined.get(volume_id, set()),
        no_ceph(),
        no_secrets(),
    )


def volume(volume_id: str, *, multiattach: bool) -> BlockDevice:
    return BlockDevice(
        uuid=volume_id,
        instance_uuid="server",
        source_type="volume",
        destination_type="volume",
        device_name="/dev/vdb",
        volume_id=volume_id,
        connection_info={"driver_volume_type": "iscsi", "data": {"id": volume_id}},
        multiattach=multiattach,
    )


def test_a_shared_volume_stays_while_another_guest_has_it(volumes: Volumes, connector: Connector) -> None:
    shared = volume(SHARED, multiattach=True)
    for guest in ("first", "second"):
        volumes.connect(guest, shared)
    volumes.disconnect("first", shared)
    assert SHARED in connector.connected
    volumes.disconnect("second", shared)
    assert connector.connected == []


def test_guests_of_before_a_restart_count(volumes: Volumes, connector: Connector, defined: dict[str, set[str]]) -> None:
    shared = volume(SHARED, multiattach=True)
    defined[SHARED] = {"first", "second"}
    connector.connected = [SHARED]
    volumes.disconnect("first", shared)
    assert connector.connected == [SHARED]
    defined[SHARED] = {"second"}
    volumes.disconnect("second", shared)
    assert connector.connected == []


def test_a_volume_of_one_guest_goes_with_it(volumes: Volumes, connector: Connector) -> None:
    own = volume(OWN, multiattach=False)
    volumes.connect("first", own)
    volumes.disconnect("first", own)
    assert connector.connected == []


@pytest.mark.parametrize("multiattach", [True, False])
def test_the_definition_of_a_guest_says_that_it_shares_a_disk(
    volumes: Volumes, connector: Connector, multiattach: bool
) -> None:
    assert connector.connected == []
    disk = volumes.connect("first", volume(SHARED, multiattach=multiattach))
    xml = f"<domain><devices>{disk_xml(disk)}</devices></domain>"
    assert ("<shareable" in (device_of_serial(xml, SHARED) or "")) is multiattach

"""Real guests with LUKS volumes, asked for over the REST API: their keys are in the key manager, and they go to another cell."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.devcloud.tables.key import Secret, VolumeKey
from causeway.devcloud.volume import files
from causeway.virt.lab.hosts import Lab, missing
from tests.functional.servers import patience
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import until
from tests.integration.cross_cell.test_guests_across_cells import HOSTS, driver, migrated
from tests.integration.embedded_guests import cloud_with_guests
from tests.integration.libvirt.lab_guests import Console
from tests.integration.libvirt.luks_volumes import MAGIC, command_lines, plain_lines

REASON = missing()
LUKS = "luks"
pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def module_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedCloud]:
    with cloud_with_guests(tmp_path_factory.mktemp("cloud"), cells=2, hosts_per_cell=1) as embedded:
        cloud = AuditedCloud(embedded)
        made = cloud.admin.block_storage.create_type(name=LUKS)
        cloud.admin.block_storage.create_type_encryption(
            made, provider=LUKS, cipher="aes-xts-plain64", key_size=256, control_location="front-end"
        )
        yield cloud


@pytest.fixture
def cloud(module_cloud: AuditedCloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditedCloud]:
    monkeypatch.setattr(patience, "PATIENCE", 200.0)
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()


def path_and_key(cloud: AuditedCloud, volume: Any) -> tuple[Path, str]:
    devcloud = cloud.embedded.devcloud
    with devcloud.store.transaction() as session:
        key = session.get(VolumeKey, volume.id)
        assert key is not None
        secret = session.get(Secret, key.secret_id)
        assert secret is not None
        return files.volume_path(devcloud, volume.id), base64.b64decode(secret.payload).hex()


def marker(cloud: AuditedCloud, server: Any, device: str, lines: int) -> dict[str, str]:
    """What the guest says of a disk when it has so many lines."""
    host = cloud.show(server).compute_host

    def look() -> Console:
        return Console(driver(cloud, host).console_output(server.id).decode(errors="replace").replace("\r", ""))

    wanted = f"CAUSEWAY-MARKER disk={device} lines={lines} "
    found = until(
        look, lambda said: wanted in said.text and said.text.endswith("\n"), f"{device} to have {lines} lines"
    )
    return found.last("CAUSEWAY-MARKER", disk=device)


def secrets_at(cloud: AuditedCloud, host: str) -> list[str]:
    """The volumes of which libvirt has the key."""
    connection = driver(cloud, host)._connection
    return [each.UUIDString() for each in connection.call("list secrets", lambda to: to.listAllSecrets())]


def test_a_luks_volume_goes_to_another_cell_cold_and_back_live_and_near_live(cloud: AuditedCloud) -> None:
    server, volume = cloud.boot(flavor="any.small"), cloud.volume(volume_type=LUKS)
    source = cloud.show(server).compute_host
    there = next(host for host in HOSTS if host != source)
    # A disk that comes while the kernel looks for disks may get the name of the first one.
    marker(cloud, server, "vda", 1)
    cloud.attach(server, volume)
    first = marker(cloud, server, "vdb", 1)["first"]
    path, key = path_and_key(cloud, volume)
    assert path.open("rb").read(8) == MAGIC
    assert plain_lines(path, key) == [first]
    assert secrets_at(cloud, source) == [volume.id]

    cloud.admin.compute.migrate_server(server, host=there)
    cloud.wait(server, "VERIFY_RESIZE")
    assert marker(cloud, server, "vdb", 2)["first"] == first
    assert (secrets_at(cloud, source), secrets_at(cloud, there)) == ([], [volume.id])
    cloud.confirmed(server)

    assert migrated(cloud, server, source) == "live_migration"
    assert (secrets_at(cloud, source), secrets_at(cloud, there)) == ([volume.id], [])
    with Lab(cloud.embedded.state.lab).network.hypervisors_apart(source):
        assert migrated(cloud, server, there) == "near_live_migration"
    assert (secrets_at(cloud, source), secrets_at(cloud, there)) == ([], [volume.id])
    assert len(plain_lines(path, key)) == 2
    assert path.open("rb").read(8) == MAGIC

    assert key not in command_lines()
    for file in cloud.embedded.state.path.rglob("*"):
        if file.is_file() and "devcloud" not in file.parts:
            assert key.encode() not in file.read_bytes(), file
    cloud.detach(server, volume)
    assert secrets_at(cloud, there) == []
    assert cloud.audit().is_clean


def test_a_guest_boots_from_a_luks_volume_and_comes_back_by_a_revert(cloud: AuditedCloud) -> None:
    root = cloud.volume(volume_type=LUKS, image_id=cloud.image_id, size=1)
    device = {"boot_index": 0, "uuid": root.id, "source_type": "volume", "destination_type": "volume"}
    server = cloud.boot(flavor="any.small", image_id="", block_device_mapping=[device])
    first = marker(cloud, server, "vda", 1)["first"]
    path, _ = path_and_key(cloud, root)
    assert path.open("rb").read(8) == MAGIC
    assert cloud.resized(server, "any.medium").compute_host
    assert marker(cloud, server, "vda", 2)["first"] == first
    cloud.reverted(server)
    assert marker(cloud, server, "vda", 3)["first"] == first

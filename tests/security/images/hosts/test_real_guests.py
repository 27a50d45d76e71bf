"""The attacks as they were found: an image that is text and names a file of the host, which only root may read.

Each looks for the content of that file in everything that a tenant could get, whether the attack was refused or not.
"""

from __future__ import annotations

import secrets
import uuid as uuids
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from causeway.errors import GuestFailed, ImageRefused
from causeway.virt.driver import ROOT_DISK, GuestSpec, RootDisk
from causeway.virt.lab.hosts import missing
from causeway.virt.libvirt.commands import run
from tests.functional.servers import patience
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.patience import until
from tests.integration.embedded_guests import cloud_with_guests
from tests.security.images.contents import MIB, SECTOR, qcow2, vmdk_text
from tests.security.journeys import ended

REASON = missing()
HOST = "cell1-host1"

pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def module_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with cloud_with_guests(tmp_path_factory.mktemp("cloud"), cells=1, hosts_per_cell=1) as embedded:
        yield Cloud(embedded)


@pytest.fixture
def cloud(module_cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setattr(patience, "PATIENCE", 120.0)
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file of the host that only root may read."""
    path = tmp_path / "secret"
    path.write_bytes(secrets.token_bytes(MIB))
    path.chmod(0o600)
    return path


def attack(secret: Path, kind: str) -> bytes:
    """What the tenant uploads, or the other host sends."""
    if kind == "vmdk":
        return vmdk_text(secret, sectors=MIB // SECTOR)
    return qcow2(backing=secret)


def upload(cloud: Cloud, data: bytes, disk_format: str = "raw") -> Any:
    return cloud.member.image.create_image(
        name=f"attack-{uuids.uuid4()}", data=data, disk_format=disk_format, container_format="bare", wait=True
    )


def has(content: bytes, secret: Path) -> bool:
    return secret.read_bytes()[: 16 * SECTOR] in content


def flat(path: Path, folder: Path) -> bytes:
    target = folder / f"flat-{uuids.uuid4()}"
    run("qemu-img", "convert", "-q", "-f", "qcow2", "-O", "raw", path, target)
    return target.read_bytes()


def snapshot_of(cloud: Cloud, server: Any, folder: Path) -> bytes:
    """The disk of a server as its user gets it: in an image."""
    made = cloud.member.compute.create_server_image(server.id, f"snapshot-{uuids.uuid4()}", wait=True)
    path = folder / "downloaded"
    cloud.member.image.download_image(made.id, output=str(path))
    return flat(path, folder)


@pytest.mark.parametrize(("kind", "disk_format"), [("vmdk", "raw"), ("qcow2", "raw"), ("qcow2", "qcow2")])
def test_an_image_that_names_a_file_of_the_host_does_not_boot(
    cloud: Cloud, secret: Path, tmp_path: Path, kind: str, disk_format: str
) -> None:
    image = upload(cloud, attack(secret, kind), disk_format)
    server = cloud.member.compute.create_server(
        name="attacker", flavor_id="any.small", image_id=image.id, networks="none"
    )
    found = ended(cloud, server)
    if found["status"] == "ACTIVE":
        assert not has(snapshot_of(cloud, server, tmp_path), secret)
    assert found["status"] == "ERROR"
    assert f"Image {image.id} was refused" in found["fault"]["message"]
    assert not list(Path(cloud.parts.state.path).rglob(f"*{server.id}*/disk*"))
    assert not list(Path(cloud.parts.state.path).rglob(f"_base/*{image.id}*"))


def test_nobody_is_rescued_with_it(cloud: Cloud, secret: Path) -> None:
    server, image = cloud.boot(flavor="any.small"), upload(cloud, attack(secret, "vmdk"))
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json={"rescue": {"rescue_image_ref": image.id}})
    assert answer.status_code == 200, answer.text
    cloud.settle()
    assert ended(cloud, server)["status"] == "ACTIVE"
    assert f"Image {image.id} was refused" in cloud.faults(server, "cell1")[-1].message
    assert not cloud.parts.computes[HOST].host.driver.has_rescue_disk(server.id)


@pytest.mark.parametrize(("kind", "said"), [("vmdk", "vmdk"), ("vmdk", "raw"), ("vmdk", "qcow2"), ("qcow2", "qcow2")])
def test_another_host_gets_no_file_of_this_one_into_a_disk(
    cloud: Cloud, secret: Path, tmp_path: Path, kind: str, said: str
) -> None:
    """What a compromised source sends, and says of it."""
    server = cloud.boot(flavor="any.small")
    instance, driver = cloud.record(server, "cell1"), cloud.parts.computes[HOST].host.driver
    instance.uuid = str(uuids.uuid4())
    sent = tmp_path / "sent"
    sent.write_bytes(attack(secret, kind))
    root = RootDisk(None, None, snapshot=sent, snapshot_format=said, size_gb=1)
    refused = None
    try:
        driver.spawn(GuestSpec(instance, root, volumes=[], vifs=[], power_on=False))
    except ImageRefused as error:
        refused = error
    with suppress(GuestFailed), driver.export_disk(instance, ROOT_DISK, flatten=True) as export:
        assert not has(flat(export.path, tmp_path), secret)
    driver.destroy(instance.uuid, [], [], destroy_disks=True)
    assert refused is not None


def test_a_bomb_makes_no_server(cloud: Cloud) -> None:
    """The image service knows the virtual size only if it looks; the host looks in any case."""
    image = upload(cloud, qcow2(size=100 << 40), "qcow2")
    new = {"name": "bomb", "flavorRef": "any.small", "imageRef": image.id, "networks": "none"}
    answer = cloud.member.compute.post("/servers", json={"server": new})
    assert answer.status_code == 400, answer.text


def test_a_raw_disk_with_a_partition_table_boots_and_its_snapshot_too(cloud: Cloud, tmp_path: Path) -> None:
    """What is honest still works: raw from the demo image, and qcow2 from its snapshot."""
    source, _format = cloud.parts.hosts.demo_image()
    raw = tmp_path / "raw"
    run("qemu-img", "convert", "-q", "-f", "qcow2", "-O", "raw", source, raw, timeout=120)
    image = upload(cloud, raw.read_bytes())
    server = cloud.boot(flavor="any.small", image_id=image.id)
    driver = cloud.parts.computes[HOST].host.driver
    until(lambda: driver.console_output(server.id), lambda said: b"CAUSEWAY-READY" in said, "the guest to boot")
    made = cloud.member.compute.create_server_image(server.id, "snapshot", wait=True)
    again = cloud.boot(flavor="any.small", image_id=made.id)
    until(lambda: driver.console_output(again.id), lambda said: b"CAUSEWAY-READY" in said, "the snapshot to boot")

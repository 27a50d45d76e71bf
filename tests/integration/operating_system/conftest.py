"""A cloud of two cells with two hosts each, and Debian in it."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from platformdirs import user_cache_path

from causeway.virt.lab import hosts
from causeway.virt.libvirt.commands import run
from causeway.virt.libvirt.guest_xml import uefi
from tests.functional.servers import patience
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.integration.embedded_guests import cloud_with_guests
from tests.integration.operating_system import debian_image
from tests.integration.operating_system.debian_servers import Debians

# Of one thing that is waited for: emulated guests on a busy machine take minutes to boot.
PATIENCE = 900.0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = hosts.missing() or debian_image.missing() or (None if list(uefi.loaders()) else "needs ovmf")
    for item in items:
        if Path(__file__).parent not in item.path.parents:
            continue
        item.add_marker(pytest.mark.libvirt)
        item.add_marker(pytest.mark.timeout(3600))
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def image() -> Path:
    cache = user_cache_path("causeway", ensure_exists=True) / "guest-image"
    # Each worker asks for it, and one builds it.
    with cache.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return debian_image.build_debian_image(cache)


@pytest.fixture(scope="module")
def cloud(image: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AuditedCloud]:
    directory = tmp_path_factory.mktemp("cloud")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(patience, "PATIENCE", PATIENCE)
        with cloud_with_guests(directory, cells=2, hosts_per_cell=2) as embedded:
            cloud = AuditedCloud(embedded)
            _add_images(cloud, image)
            # The image has 1 GiB; both flavors fit hosts of every cell.
            cloud.flavor("debian", ram=512)
            cloud.flavor("debian.larger", ram=640, disk=2)
            yield cloud
            cloud.clean()
            # The cloud does not know those that a test has started again.
            for service in embedded.computes.values():
                service.stop()
    # Gigabytes, which pytest would keep.
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def debians(cloud: AuditedCloud, tmp_path_factory: pytest.TempPathFactory) -> Debians:
    key = tmp_path_factory.mktemp("key") / "id_ed25519"
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
    public = key.with_suffix(".pub").read_text()
    cloud.member.compute.create_keypair(name="visitor", public_key=public)
    return Debians(cloud, key)


def _add_images(cloud: AuditedCloud, image: Path) -> None:
    """Debian for either firmware; it is the same file. Its kernel has no driver for the machine's own SATA controller."""
    agent = {"hw_qemu_guest_agent": "yes", "os_require_quiesce": "yes"}
    by_uefi = {"hw_firmware_type": "uefi", "hw_machine_type": "q35", "hw_cdrom_bus": "scsi"}
    for name, properties in (("debian", {}), ("debian-uefi", by_uefi)):
        cloud.admin.image.create_image(
            name=name,
            filename=str(image),
            disk_format="qcow2",
            container_format="bare",
            visibility="public",
            wait=True,
            **agent,
            **properties,
        )

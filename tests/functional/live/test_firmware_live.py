"""What the firmware and the TPM of a guest keep goes with it when it moves live, near-live, or suspended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from .live_cloud import LiveCloud, until
from .test_near_live import elsewhere

PROPERTIES = {
    "hw_firmware_type": "uefi",
    "hw_machine_type": "q35",
    "os_secure_boot": "required",
    "hw_tpm_version": "2.0",
}
NAMES = ("nvram-secure", "tpm2.0")


@pytest.fixture(scope="module")
def image(module_cloud: LiveCloud) -> Iterator[str]:
    found = module_cloud.member.image
    content = found.download_image(module_cloud.image_id).content
    form = found.get_image(module_cloud.image_id).disk_format
    formats = {"disk_format": form, "container_format": "bare"}
    made = found.create_image(name="with-tpm", data=content, wait=True, **formats, **PROPERTIES)
    yield made.id
    found.delete_image(made.id)


@pytest.fixture
def server(cloud: LiveCloud, image: str) -> Any:
    server = cloud.boot(flavor="any.small", image_id=image)
    for name in NAMES:
        cloud.driver(cloud.host_of(server)).guest_keep(server.id, name, "precious")
    return server


def kept(cloud: LiveCloud, server: Any) -> dict[str, list[str]]:
    found: dict[str, list[str]] = cloud.driver(cloud.host_of(server)).guest_firmware(server.id)
    assert set(found) == set(NAMES)
    return found


def test_kept_state_of_firmware_goes_with_a_live_migration(cloud: LiveCloud, server: Any) -> None:
    source, before = cloud.host_of(server), kept(cloud, server)
    cloud.migrated(server, host=cloud.other(source))
    cloud.check_left_nothing(server, cloud.other(source))
    assert kept(cloud, server) == before


@pytest.mark.parametrize("direct", ["auto", "never"])
def test_kept_state_of_firmware_goes_near_live(cloud: LiveCloud, server: Any, direct: str) -> None:
    cloud.option("direct", direct, "moves")
    there, before = elsewhere(cloud, server), kept(cloud, server)
    cloud.migrated(server, host=there)
    cloud.check_left_nothing(server, there)
    assert cloud.temporary_images() == []
    assert kept(cloud, server) == before
    cloud.admin.compute.reboot_server(server.id, "HARD")
    cloud.wait(server, "ACTIVE")
    assert [len(kept(cloud, server)[name]) - len(before[name]) for name in NAMES] == [1, 1]


def test_kept_state_of_firmware_stays_if_the_guest_does(cloud: LiveCloud, server: Any) -> None:
    cloud.without_patience()
    source, before = cloud.host_of(server), kept(cloud, server)
    cloud.break_driver(["cell1-host1", "cell1-host2", "cell2-host1", "cell2-host2"], "wake", 1)
    cloud.migrated(server, host=elsewhere(cloud, server))
    until(lambda: cloud.migration(server), lambda found: found.status in ("error", "failed"), "the migration to fail")
    assert cloud.host_of(server) == source
    assert kept(cloud, server) == before

"""A lab of two hosts for the tests of this folder, and guests that are made in a line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from platformdirs import user_cache_path

from causeway.virt.lab.guest_image import GuestImage, build_guest_image
from causeway.virt.lab.hosts import Lab, LibvirtEndpoint, missing
from tests.integration.libvirt.lab_guests import Cloud, Net

if TYPE_CHECKING:
    from causeway.virt.libvirt.driver import LibvirtDriver

HOSTS = ["cell1-host1", "cell2-host1"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    for item in items:
        if Path(__file__).parent not in item.path.parents:
            continue
        item.add_marker(pytest.mark.libvirt)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def guest_image() -> GuestImage:
    return build_guest_image(user_cache_path("causeway") / "guest-image")


@pytest.fixture(scope="session")
def lab_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # Longer than a Unix socket's path may be: that is what state directories are.
    return tmp_path_factory.mktemp("lab") / ("long-" * 16) / "state"


@pytest.fixture(scope="session")
def lab(lab_dir: Path) -> Iterator[Lab]:
    lab = Lab(lab_dir)
    try:
        yield lab
    finally:
        lab.stop(keep_guests=False)
        shutil.rmtree(lab_dir, ignore_errors=True)


@pytest.fixture(scope="session")
def endpoints(lab: Lab) -> dict[str, LibvirtEndpoint]:
    return lab.start(HOSTS)


@pytest.fixture(scope="session")
def started_drivers(endpoints: dict[str, LibvirtEndpoint]) -> Iterator[list[LibvirtDriver]]:
    # Not at the top: without libvirt-python these tests are skipped, and that must be possible to say.
    from causeway.virt.lab.drivers import driver_of

    found: list[LibvirtDriver] = [driver_of(endpoints[host], virt_type="qemu") for host in HOSTS]
    for driver in found:
        driver.start()
    yield found
    for driver in found:
        driver.close()


@pytest.fixture
def network(lab: Lab, endpoints: dict[str, LibvirtEndpoint]) -> Net:  # noqa: ARG001
    return Net(lab)


@pytest.fixture
def cloud(
    started_drivers: list[LibvirtDriver],
    endpoints: dict[str, LibvirtEndpoint],
    guest_image: GuestImage,
    tmp_path: Path,
) -> Iterator[Cloud]:
    volumes = tmp_path / "volumes"
    volumes.mkdir()
    cloud = Cloud(started_drivers, guest_image, volumes, [endpoints[host].instances_dir for host in HOSTS])
    try:
        yield cloud
    finally:
        cloud.clean()

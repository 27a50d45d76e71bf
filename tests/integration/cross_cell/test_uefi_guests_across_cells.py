"""A real guest whose operating system boots by UEFI goes to another cell with the variables that its firmware keeps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from platformdirs import user_cache_path

from causeway.virt.lab import hosts
from causeway.virt.libvirt.guest_xml import uefi
from tests.functional.servers import patience
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import until
from tests.integration.cross_cell import uefi_image
from tests.integration.embedded_guests import cloud_with_guests

REASON = hosts.missing() or uefi_image.missing() or (None if list(uefi.loaders()) else "needs ovmf")

pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.timeout(600),
]


@pytest.fixture
def cloud(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[AuditedCloud]:
    # Firmware and guest are emulated.
    monkeypatch.setattr(patience, "PATIENCE", 240.0)
    with cloud_with_guests(tmp_path_factory.mktemp("cloud"), cells=2, hosts_per_cell=1) as embedded:
        yield AuditedCloud(embedded)


@pytest.fixture
def image_id(cloud: AuditedCloud, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = uefi_image.build_uefi_image(user_cache_path("causeway") / "guest-image", tmp_path_factory.mktemp("image"))
    properties = {"hw_firmware_type": "uefi", "hw_machine_type": "q35"}
    made = cloud.admin.image.create_image(
        name="boots-by-uefi",
        filename=str(path),
        disk_format="raw",
        container_format="bare",
        visibility="public",
        wait=True,
        **properties,
    )
    return str(made.id)


def variable(cloud: AuditedCloud, server: Any, boot: int) -> str:
    """What the guest read from its firmware at this boot, where it runs now."""
    driver: Any = cloud.parts.computes[cloud.show(server).compute_host].host.driver

    def look() -> list[str]:
        said = driver.console_output(server.id).decode(errors="replace")
        return re.findall(rf"CAUSEWAY-UEFI boot={boot} variable=(\S+)", said)

    return until(look, bool, f"the guest to boot for the {boot}. time")[-1]


def test_the_variables_of_a_uefi_guest_go_with_it_and_come_back(cloud: AuditedCloud, image_id: str) -> None:
    for name, vcpus in (("before", 1), ("after", 2)):
        cloud.admin.compute.create_flavor(name=name, id=name, ram=256, vcpus=vcpus, disk=1)
    server = cloud.boot(flavor="before", image_id=image_id)
    source, written = cloud.show(server).compute_host, variable(cloud, server, 1)

    there = next(host for host in ("cell1-host1", "cell2-host1") if host != source)
    cloud.resized(server, "after")
    assert cloud.show(server).compute_host == there
    assert variable(cloud, server, 2) == written
    cloud.member.compute.revert_server_resize(server.id)
    cloud.wait(server, "ACTIVE")
    assert cloud.show(server).compute_host == source
    # The disk that came back has not seen the boot at the target.
    assert variable(cloud, server, 2) == written

    cloud.resized(server, "after")
    cloud.member.compute.confirm_server_resize(server.id)
    cloud.wait(server, "ACTIVE")
    assert variable(cloud, server, 3) == written
    cloud.settle()
    assert cloud.audit().is_clean

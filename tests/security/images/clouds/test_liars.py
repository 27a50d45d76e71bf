"""Images whose record is in order, and whose content is something else: hosts refuse them, and users read why."""

from __future__ import annotations

import uuid as uuids
from pathlib import Path
from typing import Any

import pytest

from tests.functional.servers.moves_cloud import Cloud
from tests.security.images.contents import iso, luks, mbr, qcow2, vmdk_text
from tests.security.journeys import ended

#: name -> (disk_format, content, words of the fault)
LIES: dict[str, tuple[str, bytes, str]] = {
    "a VMDK said to be raw": ("raw", vmdk_text("/etc/shadow"), "said to be raw, and its content is vmdk"),
    "a qcow2 said to be raw": ("raw", qcow2(), "said to be raw, and its content is qcow2"),
    "LUKS said to be raw": ("raw", luks(), "said to be raw, and its content is luks"),
    "zeros said to be qcow2": ("qcow2", bytes(4096), "said to be qcow2, and its content is raw"),
    "two at once": ("qcow2", iso(mbr(qcow2(length=440))), "said to be qcow2, and its content is"),
    "a qcow2 on a file": ("qcow2", qcow2(backing="/etc/shadow"), "names another file that it stands on"),
    "a qcow2 with a data file": ("qcow2", qcow2(features=0b100), "names another file that has its data"),
    "an encrypted qcow2": ("qcow2", qcow2(crypt_method=2), "it is encrypted"),
}
CASES = pytest.mark.parametrize("name", LIES)


def make_image(cloud: Cloud, name: str) -> Any:
    disk_format, data, _words = LIES[name]
    return cloud.member.image.create_image(
        name=f"lie-{uuids.uuid4()}", data=data, disk_format=disk_format, container_format="bare", wait=True
    )


def cached(cloud: Cloud, image: Any) -> list[Path]:
    return list(Path(cloud.parts.state.path).rglob(f"_base/*{image.id}*"))


@CASES
def test_a_server_that_is_made_from_it_is_in_error(cloud: Cloud, name: str) -> None:
    image = make_image(cloud, name)
    server = cloud.member.compute.create_server(name="n", flavor_id="gen1.small", image_id=image.id, networks="none")
    found = ended(cloud, server)
    assert found["status"] == "ERROR"
    assert LIES[name][2] in found["fault"]["message"]
    assert image.id in found["fault"]["message"]
    assert cached(cloud, image) == []


@CASES
def test_a_server_that_is_rescued_with_it_runs_as_before(cloud: Cloud, name: str) -> None:
    server, image = cloud.boot(), make_image(cloud, name)
    answer = cloud.member.compute.post(f"/servers/{server.id}/action", json={"rescue": {"rescue_image_ref": image.id}})
    assert answer.status_code == 200, answer.text
    cloud.settle()
    assert ended(cloud, server)["status"] == "ACTIVE"
    driver = cloud.driver(cloud.show(server).compute_host)
    assert not driver.has_rescue_disk(server.id)
    assert any(LIES[name][2] in fault.message for fault in cloud.faults(server, "cell1"))


@pytest.mark.parametrize("name", list(LIES)[:2])
def test_a_server_that_is_rebuilt_with_it_keeps_its_disk(cloud: Cloud, name: str) -> None:
    server, image = cloud.boot(), make_image(cloud, name)
    driver = cloud.driver(cloud.show(server).compute_host)
    driver.guest_write(server.id, "precious")
    cloud.member.compute.post(f"/servers/{server.id}/action", json={"rebuild": {"imageRef": image.id}})
    cloud.settle()
    found = ended(cloud, server)
    assert LIES[name][2] in found["fault"]["message"]
    assert "precious" in driver.guest_read(server.id)

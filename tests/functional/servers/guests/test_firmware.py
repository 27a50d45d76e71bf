"""What the firmware and the TPM of a guest keep: it travels with every kind of move, and goes back with a revert or a failure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway.model.machine_type import RECORDED
from causeway.store.cell import instances
from tests.functional.servers.moves_cloud import Cloud

REACHES = pytest.mark.parametrize("reach", ["cross", "same"])
ENDS = pytest.mark.parametrize("end", ["confirm", "revert"])
FLAVORS = {"cross": ("gen1.small", "gen2.small"), "same": ("any.small", "any.medium")}
PROPERTIES = {
    "hw_firmware_type": "uefi",
    "hw_machine_type": "q35",
    "os_secure_boot": "required",
    "hw_tpm_version": "2.0",
    "hw_tpm_model": "tpm-crb",
}
NVRAM, TPM = "nvram-secure", "tpm2.0"


@pytest.fixture(scope="module")
def image(module_cloud: Cloud) -> Iterator[str]:
    """The demo image, for guests with secure boot and a TPM."""
    cloud = module_cloud
    content = cloud.member.image.download_image(cloud.image_id).content
    form = cloud.member.image.get_image(cloud.image_id).disk_format
    made = cloud.member.image.create_image(
        name="with-tpm", disk_format=form, container_format="bare", data=content, wait=True, **PROPERTIES
    )
    yield made.id
    cloud.member.image.delete_image(made.id)


def kept(cloud: Cloud, server: Any) -> dict[str, list[str]]:
    return cloud.driver(cloud.show(server).compute_host).guest_firmware(server.id)


def keep(cloud: Cloud, server: Any, text: str) -> None:
    for name in (NVRAM, TPM):
        cloud.driver(cloud.show(server).compute_host).guest_keep(server.id, name, text)


def has_all(cloud: Cloud, server: Any, before: dict[str, list[str]]) -> bool:
    """Whether nothing of what was kept is lost; a boot adds to it."""
    now = kept(cloud, server)
    return now.keys() == before.keys() and all(now[name][: len(before[name])] == before[name] for name in before)


@REACHES
@ENDS
@pytest.mark.parametrize("direct", [True, False])
def test_kept_state_of_firmware_goes_with_a_resize_and_back_with_a_revert(
    cloud: Cloud, image: str, reach: str, end: str, direct: bool
) -> None:
    cloud.option("direct", "auto" if direct else "never", "moves")
    server = cloud.boot(flavor=FLAVORS[reach][0], image_id=image)
    keep(cloud, server, "precious")
    before = kept(cloud, server)
    assert before[NVRAM][-1] == before[TPM][-1] == "precious"

    moved = cloud.resized(server, FLAVORS[reach][1])
    assert moved.compute_host != server.compute_host
    assert has_all(cloud, server, before)
    keep(cloud, server, "kept at the target")
    cloud.settle()
    assert cloud.temporary_images() == []

    at_target = kept(cloud, server)
    if end == "confirm":
        cloud.confirmed(server)
        assert has_all(cloud, server, at_target)
    else:
        cloud.reverted(server)
        assert has_all(cloud, server, before)
        assert "kept at the target" not in kept(cloud, server)[TPM]


@pytest.mark.parametrize("reach", ["cross", "same"])
def test_a_failed_move_leaves_it_as_it_was(cloud: Cloud, image: str, reach: str) -> None:
    cloud.without_patience()
    server = cloud.boot(flavor=FLAVORS[reach][0], image_id=image)
    keep(cloud, server, "precious")
    before = kept(cloud, server)
    others = [host for host in cloud.parts.computes if host != server.compute_host]
    cloud.break_driver(others, "spawn")
    cloud.member.compute.resize_server(server.id, FLAVORS[reach][1])
    assert cloud.failed(server).compute_host == server.compute_host
    assert has_all(cloud, server, before)


@REACHES
def test_a_server_that_is_off_takes_it_along(cloud: Cloud, image: str, reach: str) -> None:
    server = cloud.boot(flavor=FLAVORS[reach][0], image_id=image)
    keep(cloud, server, "precious")
    before = kept(cloud, server)
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    cloud.resized(server, FLAVORS[reach][1])
    assert kept(cloud, server) == before
    cloud.confirmed(server)
    assert kept(cloud, server) == before


def test_a_server_on_a_volume_takes_it_along(cloud: Cloud, image: str) -> None:
    root = {"boot_index": 0, "source_type": "image", "destination_type": "volume", "uuid": image, "volume_size": 1}
    server = cloud.boot_from_volume(block_device_mapping=[root | {"delete_on_termination": True}])
    keep(cloud, server, "precious")
    before = kept(cloud, server)
    cloud.resized(server)
    assert has_all(cloud, server, before)
    cloud.reverted(server)
    assert has_all(cloud, server, before)


def test_the_source_keeps_it_until_the_target_shows_it(cloud: Cloud, image: str) -> None:
    """Confirm looks at what the target has, first."""
    server = cloud.boot(image_id=image)
    before = kept(cloud, server)
    moved = cloud.resized(server)
    tpm = cloud.driver(moved.compute_host).files.disks(server.id) / TPM
    content = tpm.read_bytes()
    tpm.unlink()
    cloud.member.compute.confirm_server_resize(server.id)
    cloud.settle()
    assert cloud.show(server).status == "VERIFY_RESIZE"
    stashed = cloud.driver(server.compute_host).files.stash(server.id)
    assert (stashed / TPM).read_text().splitlines() == before[TPM]
    tpm.write_bytes(content)
    cloud.confirmed(server)


def test_a_tpm_goes_with_the_flavor_that_asks_for_it(cloud: Cloud) -> None:
    """What the flavor does not ask for any more is not at the target, and is there again after a revert."""
    with_tpm = cloud.flavor("any.tpm")
    flavor = cloud.admin.compute.find_flavor(with_tpm)
    cloud.admin.compute.create_flavor_extra_specs(flavor, {"hw:tpm_version": "1.2"})
    server = cloud.boot(flavor=with_tpm)
    before = kept(cloud, server)
    assert list(before) == ["tpm1.2"]
    moved = cloud.resized(server, "any.small")
    assert kept(cloud, server) == {}
    assert not list(cloud.driver(moved.compute_host).files.disks(server.id).glob("tpm*"))
    cloud.reverted(server)
    assert has_all(cloud, server, before)


def test_what_nova_does_to_no_server_with_a_tpm_is_refused(cloud: Cloud, image: str) -> None:
    server = cloud.boot(image_id=image)
    for name, body in {
        "shelve": None,
        "rescue": None,
        "rebuild": {"imageRef": image},
        "evacuate": {},
    }.items():
        answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json={name: body}, microversion="2.79")
        assert (answer.status_code, answer.json()["badRequest"]["message"]) == (
            400,
            f"Operation '{name}' not supported for vTPM-enabled instance ({server.id}).",
        )


@pytest.mark.parametrize(
    ("properties", "specs", "message"),
    [
        ({"hw_firmware_type": "coreboot"}, {}, "Invalid image metadata. Error: Field value coreboot is invalid"),
        ({"hw_tpm_version": "2.0"}, {"hw:tpm_version": "1.2"}, "Conflicting values for hw_tpm_version"),
        ({}, {"os:secure_boot": "required"}, "Secure boot needs an image"),
    ],
)
def test_what_no_guest_can_have_is_refused_at_once(
    cloud: Cloud, properties: dict[str, str], specs: dict[str, str], message: str
) -> None:
    """At create, resize and rebuild; nothing is left of it."""
    formats = {"disk_format": "raw", "container_format": "bare"}
    made = cloud.member.image.create_image(name="wrong", data=b"x" * 512, wait=True, **formats, **properties)
    flavor = cloud.admin.compute.create_flavor(name="wrong", id="wrong", vcpus=1, ram=128, disk=1)
    if specs:
        cloud.admin.compute.create_flavor_extra_specs(flavor, specs)
    body = {"name": "x", "flavorRef": "wrong", "imageRef": made.id, "networks": "none"}
    refused = cloud.member.compute.post("/servers", json={"server": body}, microversion="2.79")
    assert (refused.status_code, message in refused.text) == (400, True), refused.text
    server = cloud.boot()
    asked = {"rebuild": {"imageRef": made.id}} if properties else {"resize": {"flavorRef": "wrong"}}
    if len(properties) + len(specs) == 1:
        refused = cloud.member.compute.post(f"/servers/{server.id}/action", json=asked, microversion="2.79")
        assert (refused.status_code, message in refused.text) == (400, True), refused.text
    assert cloud.show(server).status == "ACTIVE"
    cloud.admin.compute.delete_flavor(flavor)
    cloud.member.image.delete_image(made)


@pytest.mark.parametrize("reach", ["cross", "same"])
def test_a_server_keeps_the_machine_type_that_it_was_made_with(cloud: Cloud, image: str, reach: str) -> None:
    def recorded(server: Any) -> str | None:
        cell = cloud.cell(cloud.show(server).compute_host[:5])
        found: str | None = instances.get(cell, server.id, with_tags=False).system_metadata.get(RECORDED)
        return found

    plain, modern = cloud.boot(flavor=FLAVORS[reach][0]), cloud.boot(flavor=FLAVORS[reach][0], image_id=image)
    assert (recorded(plain), recorded(modern)) == ("pc", "q35")
    cloud.resized(modern, FLAVORS[reach][1])
    assert recorded(modern) == "q35"
    cloud.confirmed(modern)
    assert recorded(modern) == "q35"

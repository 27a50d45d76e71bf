"""What flavors and images say of firmware, TPM and small devices of a guest."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.errors import BadRequest, DiskTransferFailed
from causeway.hardware import firmware, guest_devices, image_properties
from causeway.hardware.firmware import Firmware, FirmwareType, SecureBoot, Tpm, firmware_of, required_traits
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.virt import kept_state


def flavor(**specs: str) -> Flavor:
    """``hw__tpm_version`` is hw:tpm_version."""
    named = {name.replace("__", ":", 1): value for name, value in specs.items()}
    return Flavor("1", "small", 1, 128, root_gb=1, extra_specs=named)


def image(**properties: object) -> ImageMeta:
    return ImageMeta("image", properties=dict(properties))


def check(asked: Flavor, properties: ImageMeta) -> None:
    image_properties.check(properties)
    firmware.check(asked, properties)
    guest_devices.check(asked, properties)


@pytest.mark.parametrize(
    ("specs", "properties", "expected", "traits"),
    [
        ({}, {}, Firmware(), set()),
        ({}, {"hw_firmware_type": "bios"}, Firmware(), set()),
        ({}, {"hw_firmware_type": "uefi"}, Firmware(FirmwareType.UEFI), {"COMPUTE_FIRMWARE_UEFI"}),
        (
            {"os__secure_boot": "required"},
            {"hw_firmware_type": "uefi"},
            Firmware(FirmwareType.UEFI, SecureBoot.REQUIRED),
            {"COMPUTE_FIRMWARE_UEFI", "COMPUTE_SECURITY_UEFI_SECURE_BOOT"},
        ),
        (
            {},
            {"hw_firmware_type": "uefi", "os_secure_boot": "optional"},
            Firmware(FirmwareType.UEFI, SecureBoot.OPTIONAL),
            {"COMPUTE_FIRMWARE_UEFI"},
        ),
        (
            {"hw__tpm_version": "2.0", "hw__tpm_model": "tpm-crb"},
            {},
            Firmware(tpm=Tpm("2.0", "tpm-crb")),
            {"COMPUTE_SECURITY_TPM_2_0", "COMPUTE_SECURITY_TPM_CRB"},
        ),
        (
            {},
            {"hw_tpm_version": "1.2"},
            Firmware(tpm=Tpm("1.2", "tpm-tis")),
            {"COMPUTE_SECURITY_TPM_1_2", "COMPUTE_SECURITY_TPM_TIS"},
        ),
    ],
)
def test_flavors_and_images_decide_the_firmware(
    specs: dict[str, str], properties: dict[str, str], expected: Firmware, traits: set[str]
) -> None:
    check(flavor(**specs), image(**properties))
    found = firmware_of(flavor(**specs), image(**properties))
    assert found == expected
    assert required_traits(found) == traits
    assert found.keeps_state is bool(traits)


@pytest.mark.parametrize(
    ("specs", "properties", "message"),
    [
        ({"hw__tpm_version": "3"}, {}, "Invalid TPM version '3'. Allowed values: 1.2, 2.0."),
        (
            {"hw__tpm_version": "2.0", "hw__tpm_model": "x"},
            {},
            "Invalid TPM model 'x'. Allowed values: tpm-tis, tpm-crb.",
        ),
        (
            {"hw__tpm_version": "1.2", "hw__tpm_model": "tpm-crb"},
            {},
            "TPM model CRB is only valid with TPM version 2.0.",
        ),
        (
            {"hw__tpm_version": "1.2"},
            {"hw_tpm_version": "2.0"},
            "Conflicting values for hw_tpm_version found in the flavor",
        ),
        (
            {"hw__tpm_version": "2.0", "hw__tpm_secret_security": "nobody"},
            {},
            "Invalid TPM secret security 'nobody'. Allowed values: user, deployment, host.",
        ),
        ({"os__secure_boot": "required"}, {}, "hw_firmware_type is 'uefi'"),
        (
            {"os__secure_boot": "required"},
            {"hw_firmware_type": "uefi", "hw_machine_type": "pc-i440fx-7.2"},
            "Secure boot needs the machine type q35",
        ),
        (
            {"os__secure_boot": "required"},
            {"hw_firmware_type": "uefi", "os_secure_boot": "disabled"},
            "Conflicting values for os_secure_boot",
        ),
        ({}, {"hw_firmware_type": "coreboot"}, "Invalid image metadata. Error: Field value coreboot is invalid"),
        ({}, {"hw_video_model": "voodoo"}, "Field value voodoo is invalid"),
        ({}, {"hw_vif_model": "token-ring"}, "Field value token-ring is invalid"),
        ({}, {"hw_disk_bus": "mfm"}, "Field value mfm is invalid"),
        ({}, {"hw_rng_model": "dice"}, "Field value dice is invalid"),
        ({}, {"hw_watchdog_action": "bark"}, "Field value bark is invalid"),
        ({}, {"hw_video_ram": "much"}, "invalid literal for int() with base 10: 'much'"),
        (
            {},
            {"hw_video_ram": "16"},
            "The requested amount of video memory 16 is higher than the maximum allowed by flavor 0.",
        ),
        (
            {"hw__serial_port_count": "1"},
            {"hw_serial_port_count": "2"},
            "Forbidden to exceed flavor value of number of serial ports",
        ),
        ({"hw__locked_memory": "true"}, {}, "forbidden when mem_page_size is not set"),
        ({"hw__mem_encryption": "true"}, {}, "Memory encryption is requested"),
        (
            {"hw__vif_multiqueue_enabled": "false"},
            {"hw_vif_multiqueue_enabled": "true"},
            "Conflicting values for hw_vif_multiqueue_enabled",
        ),
    ],
)
def test_what_no_guest_can_have(specs: dict[str, str], properties: dict[str, str], message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        check(flavor(**specs), image(**properties))
    assert message in refused.value.message


def test_words_in_any_case_and_old_words_of_cards_are_known() -> None:
    check(flavor(), image(hw_vif_model="VirtualE1000", hw_scsi_model="lsiLogicSAS", os_type="Windows"))
    found = guest_devices.devices_of(flavor(), image(hw_vif_model="VirtualE1000", hw_scsi_model="lsiLogicSAS"))
    assert (found.vif_model, found.scsi_model) == ("e1000", "lsisas1068")


def test_a_server_that_was_made_before_values_were_checked_has_nothing_of_them() -> None:
    assert (
        firmware_of(flavor(hw__tpm_version="3"), image(hw_firmware_type="coreboot", os_secure_boot="x")) == Firmware()
    )


def test_what_came_names_no_other_files(tmp_path: Path) -> None:
    (tmp_path / "nvram").write_bytes(b"variables")
    packed = tmp_path / "state"
    packed.write_bytes(kept_state.pack({"nvram": tmp_path / "nvram", "tpm/tpm2/tpm2-00.permall": tmp_path / "nvram"}))
    assert set(kept_state.unpack(packed)) == {"nvram", "tpm/tpm2/tpm2-00.permall"}
    for name in ("../nvram", "disk", "tpm/../../x", "tpm//x", "/etc/passwd", "tpm/tpm2/.lock"):
        packed.write_bytes(kept_state.pack({name: tmp_path / "nvram"}))
        with pytest.raises(DiskTransferFailed):
            kept_state.unpack(packed)
    packed.write_bytes(b"torn")
    with pytest.raises(DiskTransferFailed):
        kept_state.unpack(packed)

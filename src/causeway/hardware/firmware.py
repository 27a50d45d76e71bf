"""Firmware and TPM of a guest: what flavor and image request, and which hosts have it.

Both store data between boots, in files beside the guest's disks: UEFI its variables, a TPM its keys. A server whose guest has
either *keeps state*, and every move transfers that state.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import os_traits

from causeway import errors
from causeway.model import tpm_secrets
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance

TPM_VERSIONS = ("1.2", "2.0")
TPM_MODELS = ("tpm-tis", "tpm-crb")


class TpmSecurity(StrEnum):
    """Whose the key is with which the state of a TPM is encrypted."""

    #: of the server's user, in the key manager
    USER = "user"
    #: ours, in the key manager
    DEPLOYMENT = "deployment"
    #: there is none: the state is not encrypted
    HOST = "host"


class FirmwareType(StrEnum):
    BIOS = "bios"
    UEFI = "uefi"


class SecureBoot(StrEnum):
    DISABLED = "disabled"
    #: on if the host supports it
    OPTIONAL = "optional"
    REQUIRED = "required"


@dataclass(frozen=True)
class Tpm:
    version: str
    model: str
    security: TpmSecurity = TpmSecurity.HOST

    @property
    def is_encrypted(self) -> bool:
        return self.security is not TpmSecurity.HOST


@dataclass(frozen=True)
class Firmware:
    type: FirmwareType = FirmwareType.BIOS
    secure_boot: SecureBoot = SecureBoot.DISABLED
    tpm: Tpm | None = None

    @property
    def keeps_state(self) -> bool:
        return self.type is FirmwareType.UEFI or self.tpm is not None


def of_instance(instance: Instance) -> Firmware:
    return firmware_of(instance.flavor, instance.image_meta)


def firmware_of(flavor: Flavor, image: ImageMeta | None) -> Firmware:
    """Returns what flavor and image request. Values that `check` refuses count as not given: older servers may have them."""
    asked = _Asked(flavor, image)
    is_uefi = asked.of_image("hw_firmware_type") == FirmwareType.UEFI
    wanted = asked.one_of("os:secure_boot", "os_secure_boot")
    secure = SecureBoot(wanted) if is_uefi and wanted in tuple(SecureBoot) else SecureBoot.DISABLED
    version, model = asked.one_of("hw:tpm_version", "hw_tpm_version"), asked.one_of("hw:tpm_model", "hw_tpm_model")
    security = asked.one_of("hw:tpm_secret_security", "hw_tpm_secret_security")
    tpm = None
    if version in TPM_VERSIONS:
        tpm = Tpm(
            version,
            model if model in TPM_MODELS else TPM_MODELS[0],
            TpmSecurity(security) if security in tuple(TpmSecurity) else TpmSecurity.HOST,
        )
    return Firmware(FirmwareType.UEFI if is_uefi else FirmwareType.BIOS, secure, tpm)


def check(flavor: Flavor, image: ImageMeta | None) -> None:
    """Raises BadRequest, in Nova's words where it has some, if flavor and image ask for what no guest can have."""
    asked = _Asked(flavor, image)
    version = asked.agreed("hw:tpm_version", "hw_tpm_version", "tpm_version")
    model = asked.agreed("hw:tpm_model", "hw_tpm_model", "tpm_model")
    if version is not None and version not in TPM_VERSIONS:
        raise errors.BadRequest(f"Invalid TPM version {version!r}. Allowed values: {', '.join(TPM_VERSIONS)}.")
    if version is not None and model is not None and model not in TPM_MODELS:
        raise errors.BadRequest(f"Invalid TPM model {model!r}. Allowed values: {', '.join(TPM_MODELS)}.")
    if version == "1.2" and model == "tpm-crb":
        raise errors.BadRequest("TPM model CRB is only valid with TPM version 2.0.")
    security = asked.agreed("hw:tpm_secret_security", "hw_tpm_secret_security", "tpm_secret_security")
    if version is not None and security not in (None, *TpmSecurity):
        raise errors.BadRequest(f"Invalid TPM secret security {security!r}. Allowed values: {', '.join(TpmSecurity)}.")
    secure = asked.agreed("os:secure_boot", "os_secure_boot", "secure_boot", prefix="os")
    if secure not in (None, *SecureBoot):
        raise errors.BadRequest(f"Invalid secure boot {secure!r}. Allowed values: {', '.join(SecureBoot)}.")
    if secure == SecureBoot.REQUIRED:
        if asked.of_image("hw_firmware_type") != FirmwareType.UEFI:
            raise errors.BadRequest("Secure boot needs an image whose property hw_firmware_type is 'uefi'.")
        machine = asked.of_image("hw_machine_type")
        if machine is not None and "q35" not in machine:
            raise errors.BadRequest(f"Secure boot needs the machine type q35, and the image asks for {machine[:64]!r}.")


def check_resize(instance: Instance, flavor: Flavor) -> None:
    """Raises BadRequest if the new flavor wants the state of the TPM encrypted with a key of somebody else, or of nobody.

    A flavor without a TPM, and back, is allowed.
    """
    new, security = firmware_of(flavor, instance.image_meta).tpm, tpm_secrets.security_of(instance.system_metadata)
    if new is not None and new.security != (security or TpmSecurity.HOST):
        raise errors.BadRequest(
            f"Resize from TPM secret security {security or TpmSecurity.HOST} to {new.security} is not supported."
        )


def required_traits(firmware: Firmware) -> set[str]:
    """Returns the traits that a host must have to run such a guest."""
    found = set()
    if firmware.type is FirmwareType.UEFI:
        found.add(os_traits.COMPUTE_FIRMWARE_UEFI)
    if firmware.secure_boot is SecureBoot.REQUIRED:
        found.add(os_traits.COMPUTE_SECURITY_UEFI_SECURE_BOOT)
    if firmware.tpm is not None:
        is_2 = firmware.tpm.version == "2.0"
        found.add(os_traits.COMPUTE_SECURITY_TPM_2_0 if is_2 else os_traits.COMPUTE_SECURITY_TPM_1_2)
        is_crb = firmware.tpm.model == "tpm-crb"
        found.add(os_traits.COMPUTE_SECURITY_TPM_CRB if is_crb else os_traits.COMPUTE_SECURITY_TPM_TIS)
        if firmware.tpm.is_encrypted:
            # Hosts of earlier releases do not have it, and would not encrypt the state.
            found.add(getattr(os_traits, f"COMPUTE_SECURITY_TPM_SECRET_SECURITY_{firmware.tpm.security.upper()}"))
    return {str(trait) for trait in found}


class _Asked:
    """Extra specs of a flavor and properties of an image."""

    def __init__(self, flavor: Flavor, image: ImageMeta | None) -> None:
        self._specs: dict[str, Any] = flavor.extra_specs
        self._properties = image.properties if image is not None else {}

    def of_image(self, name: str) -> str | None:
        value = self._properties.get(name)
        return None if value is None else str(value)

    def one_of(self, spec: str, name: str) -> str | None:
        value = self._specs.get(spec)
        return str(value) if value is not None else self.of_image(name)

    def agreed(self, spec: str, name: str, setting: str, *, prefix: str = "hw") -> str | None:
        """Returns the value. Raises BadRequest if flavor and image give different ones."""
        of_flavor, of_image = self._specs.get(spec), self.of_image(name)
        if of_flavor is not None and of_image is not None and str(of_flavor) != of_image:
            raise errors.BadRequest(
                f"Conflicting values for {prefix}_{setting} found in the flavor ({of_flavor}) and the image ({of_image})."
            )
        return self.one_of(spec, name)

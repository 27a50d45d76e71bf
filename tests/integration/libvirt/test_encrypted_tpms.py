"""A real TPM whose state is encrypted: nobody reads it in its files, and it goes with its guest, cold and live."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest

from causeway.errors import GuestFailed
from causeway.model import tpm_secrets
from causeway.model.image import ImageMeta
from causeway.virt.libvirt.guest_xml import uefi
from causeway.virt.live_guest import LiveOptions
from tests.integration.libvirt.lab_guests import Cloud, Guest
from tests.integration.libvirt.lab_journeys import no_word, prepared
from tests.integration.libvirt.luks_volumes import command_lines
from tests.integration.libvirt.test_encrypted_volumes import secrets_of
from tests.integration.libvirt.test_firmware_of_guests import PROPERTIES, TPM, firmware_speaks, handed_over, kept

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        shutil.which("swtpm") is None or not any(loader.is_secure for loader in uefi.loaders()),
        reason="needs ovmf, swtpm and swtpm-tools: run scripts/install-packages.sh as root",
    ),
]
KEY = "7a" * 32
# What a file of swtpm has in its header if its content is encrypted (tlv_header.h, blob flags): see `is_encrypted`.
_ENCRYPTED = 1 << 0


def with_tpm(cloud: Cloud) -> Guest:
    guest = cloud.guest(memory_mb=256)
    guest.instance.image_meta = ImageMeta("the-image", properties=dict(PROPERTIES))
    guest.instance.system_metadata = tpm_secrets.with_key({}, str(uuid.uuid4()), "user")
    guest.driver.hold_tpm_key(guest.instance, KEY)
    guest.driver.spawn(guest.spec(guest.new_disk()))
    firmware_speaks(guest)
    return guest


def is_encrypted(state: bytes) -> bool:
    """struct blobheader: version, min_version (bytes), hdrsize, flags (16 bits, big), totlen."""
    return bool(int.from_bytes(state[4:6], "big") & _ENCRYPTED)


def test_the_state_is_encrypted_in_its_file_and_goes_cold_to_another_host(cloud: Cloud, tmp_path: Path) -> None:
    guest, (source, target) = with_tpm(cloud), cloud.drivers
    assert KEY not in command_lines()
    for path in (*source._instances_dir.rglob("*"), *(source._kept.swtpm / guest.uuid).rglob("*")):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
    source.power_off(guest.uuid, 0)
    before = kept(source, guest)
    assert is_encrypted(before[TPM])

    spec = handed_over(guest, tmp_path)
    assert secrets_of(guest) == []
    guest.driver, spec.power_on = target, False
    target.spawn(spec)
    target.hold_tpm_key(guest.instance, "00" * 32)
    with pytest.raises(GuestFailed):
        target.power_on(guest.spec())
    target.hold_tpm_key(guest.instance, KEY)
    target.power_on(guest.spec())
    firmware_speaks(guest)
    assert is_encrypted(kept(target, guest)[TPM])


def test_a_guest_migrates_live_with_it(cloud: Cloud) -> None:
    guest, (source, target) = with_tpm(cloud), cloud.drivers
    target.hold_tpm_key(guest.instance, KEY)
    source.live_migrate(guest.spec(), prepared(guest, target), LiveOptions(), no_word)
    source.destroy(guest.uuid, [], [], destroy_disks=True)
    assert secrets_of(guest) == []
    guest.driver = target
    target.power_off(guest.uuid, 0)
    assert is_encrypted(kept(target, guest)[TPM])
    target.power_on(guest.spec())
    firmware_speaks(guest)


def test_a_tpm_of_before_keeps_its_state_as_it_is(cloud: Cloud) -> None:
    guest = cloud.guest(memory_mb=256)
    guest.instance.image_meta = ImageMeta("the-image", properties=dict(PROPERTIES))
    guest.driver.spawn(guest.spec(guest.new_disk()))
    firmware_speaks(guest)
    guest.driver.power_off(guest.uuid, 0)
    assert not is_encrypted(kept(guest.driver, guest)[TPM])

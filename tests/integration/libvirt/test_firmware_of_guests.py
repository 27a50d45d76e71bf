"""Guests with UEFI, secure boot and a TPM: what these keep goes with them, and is as it was where they come back."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from causeway.model.image import ImageMeta
from causeway.model.states import PowerState
from causeway.virt.driver import KEPT_STATE, GuestSpec
from causeway.virt.libvirt.guest_xml import uefi
from causeway.virt.live_guest import LiveOptions, Presence
from tests.integration.libvirt.lab_guests import Cloud, Guest
from tests.integration.libvirt.lab_journeys import no_word, prepared

if TYPE_CHECKING:
    from causeway.virt.libvirt.driver import LibvirtDriver

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        shutil.which("swtpm") is None or not any(loader.is_secure for loader in uefi.loaders()),
        reason="needs ovmf, swtpm and swtpm-tools: run scripts/install-packages.sh as root",
    ),
]

PROPERTIES = {
    "hw_firmware_type": "uefi",
    "hw_machine_type": "q35",
    "os_secure_boot": "required",
    "hw_tpm_version": "2.0",
    "hw_tpm_model": "tpm-crb",
}
NVRAM, TPM = "nvram-secure", "tpm/tpm2/tpm2-00.permall"
# A piece of a key: so many bytes, and so many different values among them. Text and lengths, which some TPMs have in common
# and others have not, repeat their values more often.
_PIECE, _VALUES = 64, 50


def spawned(cloud: Cloud) -> Guest:
    guest = cloud.guest(memory_mb=256)
    guest.instance.image_meta = ImageMeta("the-image", properties=dict(PROPERTIES))
    guest.driver.spawn(guest.spec(guest.new_disk()))
    return guest


def booted(cloud: Cloud) -> Guest:
    """The disk has nothing that is signed: the firmware finds nothing to boot, says so, and has written its variables by then."""
    guest = spawned(cloud)
    firmware_speaks(guest)
    return guest


def tpm_of_another(cloud: Cloud) -> bytes:
    guest = spawned(cloud)
    guest.driver.power_off(guest.uuid, 0)
    return kept(guest.driver, guest)[TPM]


def firmware_speaks(guest: Guest) -> None:
    guest.wait(lambda said: "BdsDxe" in said.text)


def kept(driver: LibvirtDriver, guest: Guest) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in driver._kept._files(guest.uuid).items()}


def is_same_tpm(one: bytes, other: bytes, stranger: bytes) -> bool:
    """Whether both have a piece of a key that the stranger lacks. Keys are made with a TPM, and stay while its state changes."""

    def pieces(state: bytes) -> set[bytes]:
        found = (state[start : start + _PIECE] for start in range(len(state) - _PIECE))
        return {piece for piece in found if len(set(piece)) >= _VALUES}

    return bool((pieces(one) & pieces(other)) - pieces(stranger))


def handed_over(guest: Guest, directory: Path) -> GuestSpec:
    """What the source does when its guest is off; how the target is to make the guest."""
    source = guest.driver
    received = {}
    for name in ("disk", KEPT_STATE):
        export = (
            source.export_kept_state(guest.instance)
            if name == KEPT_STATE
            else source.export_disk(guest.instance, name, flatten=False)
        )
        with export as made:
            received[name] = Path(shutil.copy(made.path, directory / f"received-{name}"))
        assert not made.path.exists()
    source.destroy(guest.uuid, [], [], destroy_disks=False)
    source.stash_disks(guest.uuid)
    root = guest.new_disk()
    root.snapshot = received["disk"]
    spec = guest.spec(root)
    spec.kept_state = received[KEPT_STATE]
    return spec


def test_kept_state_of_firmware_goes_to_another_host_and_back(cloud: Cloud, tmp_path: Path) -> None:
    source, target = cloud.drivers
    foreign, another = tpm_of_another(cloud), tpm_of_another(cloud)
    guest = booted(cloud)
    source.power_off(guest.uuid, 0)
    before = kept(source, guest)
    assert {NVRAM, TPM} <= set(before)
    assert before[NVRAM] != Path("/usr/share/OVMF/OVMF_VARS_4M.ms.fd").read_bytes()
    assert not is_same_tpm(before[TPM], another, foreign)

    spec = handed_over(guest, tmp_path)
    assert not (source._kept.swtpm / guest.uuid).exists()
    assert source.copy_faults(guest.uuid, [], [], stashed=True) == []
    guest.driver = target
    spec.power_on = False
    target.spawn(spec)
    assert kept(target, guest) == before
    target.power_on(guest.spec())
    firmware_speaks(guest)
    assert target.copy_faults(guest.uuid, [], []) == []
    assert is_same_tpm(kept(target, guest)[TPM], before[TPM], foreign)
    (target._kept.swtpm / guest.uuid / "tpm2/tpm2-00.permall").unlink()
    assert [TPM in fault for fault in target.copy_faults(guest.uuid, [], [])] == [True]

    target.destroy(guest.uuid, [], [], destroy_disks=True)
    assert not (target._kept.swtpm / guest.uuid).exists() and guest.uuid not in target.list_disks()
    guest.driver = source
    source.restore_stashed_disks(guest.uuid)
    assert kept(source, guest) == before
    source.power_on(guest.spec())
    firmware_speaks(guest)
    assert is_same_tpm(kept(source, guest)[TPM], before[TPM], foreign)


def test_kept_state_of_firmware_goes_with_the_memory_of_a_guest(cloud: Cloud, tmp_path: Path) -> None:
    """Through a file, and live: the hypervisor takes it along, and it is there when the guest boots."""
    source, target = cloud.drivers
    foreign = tpm_of_another(cloud)
    guest = booted(cloud)
    before = kept(source, guest)
    source.save_memory(guest.uuid)
    memory = source.saved_memory(guest.uuid)
    assert memory is not None
    received = Path(shutil.copy(memory, tmp_path / "memory"))
    spec = handed_over(guest, tmp_path)
    spec.memory = received
    guest.driver = target
    target.wake(spec)
    target.resume_woken(guest.uuid, is_paused=False)
    assert target.inspect(guest.uuid).power_state is PowerState.RUNNING
    assert is_same_tpm(kept(target, guest)[TPM], before[TPM], foreign)
    assert kept(target, guest)[NVRAM] == before[NVRAM]
    source.delete_stashed_disks(guest.uuid)

    target.live_migrate(guest.spec(), prepared(guest, source), LiveOptions(), no_word)
    assert (source.presence(guest.uuid), target.presence(guest.uuid)) == (Presence.RUNNING, Presence.ABSENT)
    target.destroy(guest.uuid, [], [], destroy_disks=True)
    assert not (target._kept.swtpm / guest.uuid).exists()
    guest.driver = source
    assert is_same_tpm(kept(source, guest)[TPM], before[TPM], foreign)
    assert kept(source, guest)[NVRAM] == before[NVRAM]
    source.power_off(guest.uuid, 0)
    source.power_on(guest.spec())
    firmware_speaks(guest)
    assert is_same_tpm(kept(source, guest)[TPM], before[TPM], foreign)

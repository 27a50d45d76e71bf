"""Where the state of a TPM is when something is broken off in the middle: nothing of it is lost, and the older one never wins."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from causeway import durable
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.virt.driver import GuestSpec
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.libvirt.storage.kept_files import KeptFiles

UUID = "8f1a4b0e-66c5-4d8c-9d35-2b3b0d0c0001"
STATE = "tpm2/tpm2-00.permall"


@pytest.fixture
def kept(tmp_path: Path) -> KeptFiles:
    files = KeptFiles(InstanceDisks(tmp_path / "instances", 10.0), tmp_path / "swtpm")
    files.disks.make_folder(UUID)
    return files


def put(folder: Path, content: str, name: str = STATE) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content)


def known(kept: KeptFiles) -> Path:
    """Where libvirt has it."""
    return kept.swtpm / UUID


def beside(kept: KeptFiles) -> Path:
    return kept.disks.folder(UUID) / "tpm"


def spec(received: Path, **properties: str) -> GuestSpec:
    image = ImageMeta("image", properties=properties)
    server = Instance(UUID, "project", "user", "server", Flavor("1", "small", 1, 128, root_gb=1), image_meta=image)
    return GuestSpec(server, None, [], [], kept_state=received)


def received(kept: KeptFiles, directory: Path) -> Path:
    """What another host is sent."""
    with kept.export(UUID) as export:
        return Path(shutil.copy(export.path, directory / "received"))


def test_kept_state_is_in_one_place_at_a_time(kept: KeptFiles) -> None:
    put(known(kept), "state")
    put(known(kept), "", "tpm2/.lock")
    kept.put_beside_disks(UUID)
    assert (beside(kept) / STATE).read_text() == "state" and not known(kept).exists()
    kept.put_beside_disks(UUID)
    kept.place(UUID)
    assert (known(kept) / STATE).read_text() == "state" and not beside(kept).exists()
    kept.place(UUID)
    assert (known(kept) / STATE).read_text() == "state"
    kept.delete(UUID)
    assert not known(kept).exists()


def test_what_was_put_back_counts_if_its_placing_was_broken_off(kept: KeptFiles) -> None:
    """A revert has put it back; what libvirt has is of an earlier life, or half of a copy."""
    put(known(kept), "older")
    put(beside(kept), "newer")
    put(known(kept).with_name(f".{UUID}.partial"), "half")
    assert kept._files(UUID)[f"tpm/{STATE}"].read_text() == "newer"
    kept.place(UUID)
    assert (known(kept) / STATE).read_text() == "newer"


def test_a_guest_that_moves_before_it_was_started_takes_what_was_restored(kept: KeptFiles) -> None:
    put(known(kept), "older")
    put(beside(kept), "newer")
    kept.put_beside_disks(UUID)
    assert (beside(kept) / STATE).read_text() == "newer" and not known(kept).exists()


def test_a_state_that_was_placed_and_half_deleted_beside_the_disks_is_not_placed_again(
    kept: KeptFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host's power fails while what was placed is deleted."""
    put(beside(kept), "state")
    put(beside(kept), "other", "tpm2/other")
    delete_tree = durable.delete_tree

    def fail_in_the_middle(folder: Path) -> None:
        if not (folder / STATE).exists():
            return delete_tree(folder)
        (folder / STATE).unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(durable, "delete_tree", fail_in_the_middle)
    with pytest.raises(KeyboardInterrupt):
        kept.place(UUID)
    monkeypatch.setattr(durable, "delete_tree", delete_tree)
    kept.place(UUID)
    assert (known(kept) / STATE).read_text() == "state" and not beside(kept).exists()
    kept.put_beside_disks(UUID)
    kept.place(UUID)
    assert (known(kept) / STATE).read_text() == "state"
    assert [path.name for path in kept.disks.folder(UUID).iterdir()] == []


def test_what_is_missing_at_the_target_is_reported(kept: KeptFiles, tmp_path: Path) -> None:
    put(known(kept), "state")
    put(known(kept), "passing", "tpm2/tpm2-00.volatilestate")
    put(kept.disks.folder(UUID), "variables", "nvram")
    file = received(kept, tmp_path)
    target = KeptFiles(InstanceDisks(tmp_path / "target", 10.0), tmp_path / "target-swtpm")
    target.take(spec(file, hw_firmware_type="uefi", hw_tpm_version="2.0"), None)
    assert target.faults(UUID) == []
    target.place(UUID)
    (target.swtpm / UUID / "tpm2/tpm2-00.volatilestate").unlink()
    assert target.faults(UUID) == []
    (target.swtpm / UUID / STATE).write_text("")
    (fault,) = target.faults(UUID)
    assert STATE in fault
    (target.disks.folder(UUID) / "nvram").unlink()
    assert len(target.faults(UUID)) == 2
    # The source's is as it was, and shows itself when it is stashed.
    kept.put_beside_disks(UUID)
    InstanceDisks(kept.disks.directory, kept.disks.timeout).stash(UUID)
    assert kept.faults(UUID, stashed=True) == []
    shutil.rmtree(kept.disks.stashed_folder(UUID) / "tpm")
    assert len(kept.faults(UUID, stashed=True)) == 1


@pytest.mark.parametrize(
    ("properties", "names"),
    [
        ({"hw_firmware_type": "uefi"}, {"nvram"}),
        ({"hw_tpm_version": "2.0"}, {f"tpm/{STATE}"}),
        ({"hw_tpm_version": "1.2"}, set()),
        ({}, set()),
    ],
)
def test_what_the_guest_will_not_have_is_not_taken(
    kept: KeptFiles, tmp_path: Path, properties: dict[str, str], names: set[str]
) -> None:
    put(known(kept), "state")
    put(kept.disks.folder(UUID), "variables", "nvram")
    file = received(kept, tmp_path)
    target = KeptFiles(InstanceDisks(tmp_path / "target", 10.0), tmp_path / "target-swtpm")
    target.take(spec(file, **properties), None)
    assert set(target._files(UUID)) == names
    # Again, over what an attempt before left.
    put(target.disks.folder(UUID) / "tpm", "of an attempt", "tpm2/other")
    target.take(spec(file, **properties), None)
    assert set(target._files(UUID)) == names

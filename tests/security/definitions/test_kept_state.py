"""State of firmware and TPM that came from another host: as large as it should be, and where it should be."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.errors import DiskTransferFailed, GuestRefused
from causeway.model.flavor import Flavor
from causeway.model.image import ImageMeta
from causeway.model.instance import Instance
from causeway.virt import kept_state
from causeway.virt.driver import GuestSpec
from causeway.virt.libvirt.guest_xml.domain_xml import Uefi
from causeway.virt.libvirt.guest_xml.uefi import Loader
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.libvirt.storage.kept_files import KeptFiles
from tests.security.definitions.guests import UUID

TPM = "tpm/tpm2/tpm2-00.permall"


def sent(folder: Path, content: object) -> Path:
    path = folder / "received"
    path.write_bytes(msgspec.msgpack.encode(content))
    return path


def spec(received: Path) -> GuestSpec:
    image = ImageMeta("image", properties={"hw_firmware_type": "uefi", "hw_tpm_version": "2.0"})
    server = Instance(UUID, "project", "user", "server", Flavor("1", "small", 1, 128, root_gb=1), image_meta=image)
    return GuestSpec(server, None, [], [], kept_state=received)


def host(folder: Path) -> tuple[KeptFiles, Uefi]:
    files = KeptFiles(InstanceDisks(folder / "instances", 10.0), folder / "swtpm")
    template = folder / "VARS.fd"
    template.write_bytes(b"v" * 4096)
    return files, Uefi(Loader(Path("/code"), template), files.disks.folder(UUID) / "nvram")


@pytest.mark.parametrize("size", [0, 1, 4095, 4097, 1 << 20])
def test_variables_of_another_size_are_refused(tmp_path: Path, size: int) -> None:
    files, uefi = host(tmp_path)
    with pytest.raises(GuestRefused, match="variables of UEFI"):
        files.take(spec(sent(tmp_path, {"nvram": b"x" * size, TPM: b"state"})), uefi)
    assert not files.disks.folder(UUID).exists()
    files.take(spec(sent(tmp_path, {"nvram": b"x" * 4096, TPM: b"state"})), uefi)
    assert files.faults(UUID) == []


@pytest.mark.parametrize(
    "content",
    [
        {"../nvram": b""},
        {"/etc/passwd": b""},
        {"tpm/../../x": b""},
        {"tpm/tpm2/.lock": b""},
        {"tpm/tpm2/a/b/c": b""},
        {"nvram\n": b""},
        {"disk": b""},
        {"kept.json": b""},
        {"": b""},
        {"tpm/tpm2": b"", TPM: b""},
        {f"tpm/tpm2/{number}": b"" for number in range(65)},
        {"nvram": "text"},
        {"nvram": b"x" * (17 << 20)},
        ["nvram"],
        None,
    ],
)
def test_other_names_shapes_and_sizes_are_refused(tmp_path: Path, content: object) -> None:
    files, uefi = host(tmp_path)
    with pytest.raises(DiskTransferFailed):
        files.take(spec(sent(tmp_path, content)), uefi)
    assert not files.disks.folder(UUID).exists()


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.text(alphabet="tpm2/.-nvra\0\n", max_size=12) | st.sampled_from(["nvram", TPM, "tpm/tpm2"]),
        st.binary(max_size=8),
        max_size=5,
    )
)
def test_whatever_comes_is_written_where_it_belongs(
    tmp_path_factory: pytest.TempPathFactory, content: dict[str, bytes]
) -> None:
    folder = tmp_path_factory.mktemp("state")
    try:
        found = kept_state.unpack(sent(folder, content))
    except DiskTransferFailed:
        return
    place = folder / "below" / UUID
    kept_state.write(place, found)
    assert {path for path in folder.rglob("*") if path.is_file()} == {
        folder / "received",
        *(place / name for name in found),
    }


def test_a_link_that_a_tpm_made_is_not_followed(tmp_path: Path) -> None:
    """Its folder belongs to the account that it runs as, which may read less than this process."""
    files, _uefi = host(tmp_path)
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    there = files.swtpm / UUID / "tpm2"
    there.mkdir(parents=True)
    (there / "tpm2-00.permall").write_text("state")
    (there / "link").symlink_to(secret)
    (there.parent / "folder").symlink_to(tmp_path)
    with files.export(UUID) as export:
        assert set(kept_state.unpack(export.path)) == {TPM}
    files.put_beside_disks(UUID)
    assert b"of the host" not in b"".join(
        path.read_bytes() for path in files.disks.folder(UUID).rglob("*") if path.is_file()
    )

"""No program guesses: every call of QEMU's tools, every layer and every disk of a guest names its format, and has limits."""

from __future__ import annotations

import ast
import inspect
import json
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import causeway
from causeway.errors import GuestFailed
from causeway.virt.driver import BaseImage
from causeway.virt.libvirt.guest_xml.domain_xml import GuestDisk, GuestHardware, destination_xml, disk_xml, domain_xml
from causeway.virt.libvirt.guest_xml.rbd_source import CephAccess, RbdSource
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.qemu_img import Layer

SOURCE = Path(causeway.__file__).parent
# Programs that open disk images.
TOOLS = ("qemu-img", "qemu-nbd", "qemu-io", "qemu-storage-daemon", "guestfish", "virt-make-fs", "nbdcopy")
# Who may call qemu-img: one place, and programs that are not a host's.
CALLERS = {"virt/libvirt/storage/qemu_img.py", "devcloud/volume/files.py", "virt/lab/guest_image.py"}


def commands(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """(tool, the constant words) of every call, list or tuple that begins a command with a tool."""
    for node in ast.walk(tree):
        parts = node.args if isinstance(node, ast.Call) else node.elts if isinstance(node, ast.List | ast.Tuple) else []
        inner = [each.value for each in parts if isinstance(each, ast.Starred)]
        starred = [word for each in inner if isinstance(each, ast.List | ast.Tuple) for word in each.elts]
        flat = [*parts, *inner, *starred]
        words = [each.value for each in flat if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        for tool in TOOLS:
            if tool in words:
                yield tool, words


def all_commands() -> Iterator[tuple[str, str, list[str]]]:
    for path in SOURCE.rglob("*.py"):
        for tool, words in commands(ast.parse(path.read_text())):
            yield str(path.relative_to(SOURCE)), tool, words


def test_only_these_files_call_qemu_img() -> None:
    found = {path for path, tool, words in all_commands() if tool == "qemu-img" and "qemu-system-x86_64" not in words}
    assert found == CALLERS


def test_every_command_outside_of_that_one_file_names_a_format() -> None:
    found = [
        (path, words)
        for path, tool, words in all_commands()
        # `which` and the list of what a lab needs are no commands.
        if len(words) > 1 and "qemu-system-x86_64" not in words and path != "virt/libvirt/storage/qemu_img.py"
    ]
    assert {path for path, _words in found} == {*CALLERS, "virt/libvirt/storage/nbd_server.py"} - {
        "virt/libvirt/storage/qemu_img.py"
    }
    # A word that is no constant names the driver of these.
    assert [(path, words) for path, words in found if not {"-f", "--image-opts"} & set(words)] == []
    # What hosts run on images of users has limits.
    assert [path for path, words in found if "prlimit" in words] == ["virt/libvirt/storage/nbd_server.py"]


RAW_BELOW, IMAGE_BELOW = Layer(Path("/below"), "raw"), BaseImage(Path("/below"), "qcow2", 1)


def copied_without_layer(path: Path) -> None:
    qemu_img.copy(path, path, RAW_BELOW, 9)


#: every public function of the module -> calls of it
CALLS: dict[str, list[Callable[[Path], object]]] = {
    "info": [qemu_img.info],
    "virtual_size": [qemu_img.virtual_size],
    "layer_below": [qemu_img.layer_below],
    "layer_in": [lambda path: qemu_img.layer_in(qemu_img.info(path), path)],
    "create": [
        partial(qemu_img.create, size=1),
        partial(qemu_img.create, size=1, below=RAW_BELOW),
        partial(qemu_img.create, size=1, below=IMAGE_BELOW),
    ],
    "copy": [
        partial(qemu_img.copy, target=Path("/copy"), without=None, timeout=9),
        copied_without_layer,
    ],
    "to_raw": [partial(qemu_img.to_raw, IMAGE_BELOW, timeout=9)],
    "overwrite": [partial(qemu_img.overwrite, target=Path("/dev/null"), timeout=9)],
    "make_snapshot": [partial(qemu_img.make_snapshot, label="label")],
    "roll_back": [partial(qemu_img.roll_back, label="label")],
    "delete_snapshot": [partial(qemu_img.delete_snapshot, label="label", timeout=9)],
    "from_raw": [partial(qemu_img.from_raw, target=Path("/copy"))],
    "to_network": [partial(qemu_img.to_network, disk_format="qcow2", url="rbd:pool/image", timeout=9)],
    "from_network": [lambda path: qemu_img.from_network("rbd:pool/image", path, 1, 9)],
    "name_below": [
        partial(qemu_img.name_below, below=None),
        partial(qemu_img.name_below, below=RAW_BELOW),
        partial(qemu_img.name_below, below=IMAGE_BELOW),
    ],
    "pull": [
        partial(qemu_img.pull, below=None, timeout=9),
        partial(qemu_img.pull, below=("below", "raw"), timeout=9),
    ],
    "grow": [partial(qemu_img.grow, size=1 << 40)],
    "settle_foreign": [
        partial(qemu_img.settle_foreign, below=None, size=1 << 40),
        partial(qemu_img.settle_foreign, below=IMAGE_BELOW, size=1 << 40),
    ],
    "check": [partial(qemu_img.check, timeout=9)],
    "remove_bitmap": [partial(qemu_img.remove_bitmap, name="bitmap")],
    "require_ceph": [lambda _path: qemu_img.require_ceph()],
    "size_in_ceph": [
        lambda _path: qemu_img.size_in_ceph(RbdSource("pool/image", CephAccess(())), None, 9),
        lambda _path: qemu_img.size_in_ceph(RbdSource("pool/image", CephAccess((), "a", "b")), "a2V5", 9),
    ],
}


def test_every_function_is_looked_at() -> None:
    public = {
        name
        for name, value in vars(qemu_img).items()
        if inspect.isfunction(value) and value.__module__ == qemu_img.__name__ and not name.startswith("_")
    }
    assert public == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_every_call_names_each_format_and_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path = tmp_path / "disk"
    path.write_bytes(bytes(512))
    seen: list[list[str]] = []

    def run(*words: str | Path, **_options: Any) -> str:
        seen.append([str(word) for word in words])
        return json.dumps({"virtual-size": 1})

    monkeypatch.setattr(qemu_img, "run", run)
    for call in CALLS[name]:
        call(path)
    assert seen
    for words in seen:
        at = words.index("qemu-img")
        if words[at + 1] == "snapshot":
            assert words[-1] == f"driver=qcow2,file.driver=file,file.filename={path}" and words[-2] == "--image-opts"
        else:
            assert words[at + 2 :].count("-f") == 1 and words[words.index("-f") + 1] in ("raw", "qcow2", "rbd")
        limits = words[words.index("prlimit") + 1 : at]
        assert {limit.partition("=")[0] for limit in limits} == {"--as", "--cpu", "--fsize", "--core"}
        assert all(int(limit.partition("=")[2]) >= 0 for limit in limits)
        for option in ("-b", "-B"):
            if option in words and words[words.index(option) + 1]:
                assert words[words.index("-F") + 1] in ("raw", "qcow2")
        if words[at + 1] == "convert":
            is_raw = words[-1].startswith("rbd:") or name == "to_raw"
            assert words[words.index("-O") + 1] == ("raw" if is_raw else "qcow2")
        if words[at + 1] == "create" and "-b" in words:
            assert "-u" in words, "the image is not opened"
        assert "--backing-chain" not in words, "it opens what headers name"


@pytest.mark.parametrize("recorded", [[], ["-F", "vmdk"]])
def test_a_layer_whose_format_is_not_known_to_be_harmless_is_not_opened(tmp_path: Path, recorded: list[str]) -> None:
    """As a disk of release 0.1.0 that stands on a VMDK, or one that somebody made by hand."""
    if shutil.which("qemu-img") is None:
        pytest.skip("qemu-img is not installed")
    disk = tmp_path / "disk"
    qemu_img.create(disk, 1 << 20, Layer(tmp_path / "nothing", "raw"))
    if recorded:
        qemu_img.name_below(disk, Layer(tmp_path / "nothing", "vmdk"))
    else:
        content = disk.read_bytes()
        # The header extension with the format becomes one that nobody knows.
        disk.write_bytes(content.replace(bytes.fromhex("e2792aca"), bytes.fromhex("e2792acb"), 1))
    with pytest.raises(GuestFailed, match="not known to be raw or qcow2"):
        qemu_img.layer_below(disk)


def test_every_disk_of_a_guest_names_its_format() -> None:
    disks = [
        GuestDisk("vda", Path("/disk"), "qcow2", is_root=True),
        GuestDisk("vdb", Path("/dev/sdx"), "raw", is_block=True, serial="s"),
        GuestDisk("sdb", Path("/cd"), "qcow2", device="cdrom", read_only=True),
    ]
    guest = GuestHardware("u", "n", "t", "qemu", 1, 128, Path("/log"), config_drive=Path("/disk.config"), disks=disks)
    written = [domain_xml(guest), *(f"<d>{disk_xml(disk)}{destination_xml(disk, part=9)}</d>" for disk in disks)]
    found = [disk for xml in written for disk in ET.fromstring(xml).iter("disk")]
    assert len(found) == 10
    assert [disk.find("driver").get("type") for disk in found if disk.find("driver") is not None] == [  # type: ignore[union-attr]
        *("qcow2", "raw", "qcow2", "raw"),
        *("qcow2", "qcow2", "raw", "raw", "qcow2", "qcow2"),
    ]

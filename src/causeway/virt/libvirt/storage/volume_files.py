"""Snapshots of volumes that are files: the guest continues in a new file on top of the present ones, and files are merged.

Block storage makes the new file, a qcow2 file on top of the guest's present one, before it asks. It deletes files that were
merged.
"""

from __future__ import annotations

import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import libvirt
import libvirt_qemu

from causeway.errors import GuestFailed
from causeway.model.image import QCOW2
from causeway.virt.driver.volume_jobs import CopyProgress
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.guest_xml.domain_xml import device_of_serial
from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.qemu_img import Layer

# Seconds between two checks of a merge.
_LOOK_EVERY = 0.5
_MERGE_SECONDS = 3600.0
# More files than snapshots that anybody makes: they stand on one another.
_MOST_LAYERS = 500
_SNAPSHOT_FLAGS = (
    libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_DISK_ONLY
    | libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_NO_METADATA
    | libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_REUSE_EXT
    | libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_ATOMIC
)


def snapshot(connection: Connection, uuid: str, serial: str, new_file: str) -> None:
    """Switches a running guest to ``new_file``, in the folder of its present file. Already done, or guest off: nothing happens.

    ``serial``: the id of the volume. Raises `GuestFailed` if the guest has no such volume, or if there is no such file.
    """

    def begin(hypervisor: Any) -> None:
        domain = power.find(hypervisor, uuid)
        if domain is None or not domain.isActive():
            # It will start from the new file, which has no content of its own yet.
            return
        wanted, files = ET.Element("domainsnapshot"), chain(domain, serial)
        if files[0].name == new_file:
            return
        path = files[0].with_name(new_file)
        if not path.exists():
            raise GuestFailed(f"There is no file {new_file} beside the file of volume {serial}.", details=str(path))
        disks = ET.SubElement(wanted, "disks")
        for target in targets(domain):
            ET.SubElement(disks, "disk", name=target, snapshot="no")
        mine = disks.find(f"disk[@name='{target_of(domain, serial)}']")
        if mine is None:
            raise GuestFailed(f"Guest {uuid} has no volume {serial}.")
        mine.set("snapshot", "external")
        mine.set("type", "file")
        ET.SubElement(mine, "driver", type="qcow2")
        ET.SubElement(mine, "source", file=str(path))
        domain.snapshotCreateXML(ET.tostring(wanted, encoding="unicode"), _SNAPSHOT_FLAGS)

    connection.call(f"make a snapshot of volume {serial} of guest {uuid}", begin)


def uses(connection: Connection, uuid: str, serial: str, name: str) -> bool:
    """Whether the guest writes to the file with this name; True if it is off."""

    def ask(hypervisor: Any) -> bool:
        domain = power.find(hypervisor, uuid)
        return domain is None or not domain.isActive() or chain(domain, serial)[0].name == name

    return connection.call(f"describe the files of volume {serial}", ask, again=True)


def merge(
    connection: Connection, uuid: str, serial: str, merged: str | None, into: str | None, progress: CopyProgress
) -> None:
    """Merges files of a volume of a running guest; see `VolumeJobMethods.merge_volume_files`. Already done: nothing happens.

    With ``into``: the files above it, up to ``merged``, are merged into it. ``into`` None: the files between the guest's own file
    and ``merged`` (None: all files below) are merged into the guest's own file. Raises `GuestFailed` if the guest is off.
    """

    def begin(hypervisor: Any) -> str | None:
        domain = power.find(hypervisor, uuid)
        if domain is None or not domain.isActive():
            raise GuestFailed(
                f"The guest of server {uuid} is off: files of its volume {serial} are merged while it runs."
            )
        files, target = chain(domain, serial), target_of(domain, serial)
        if domain.blockJobInfo(target, 0):
            return target
        by_name = {path.name: path for path in files}
        if into is None:
            return _pull(domain, target, files, by_name, merged)
        if merged not in by_name:
            return None
        if into not in by_name or files[0].name == merged:
            raise GuestFailed(
                f"The files of volume {serial} can't be merged as asked for.", details=f"{merged} into {into}"
            )
        _keeping_names(
            lambda flag: domain.blockCommit(target, str(by_name[into]), str(by_name[merged]), 0, flag),
            libvirt.VIR_DOMAIN_BLOCK_COMMIT_RELATIVE,
        )
        return target

    what = f"merge files of volume {serial} of guest {uuid}"
    target = connection.call(what, begin)
    while target is not None:
        job = connection.call(
            what,
            lambda hypervisor: hypervisor.lookupByUUIDString(uuid).blockJobInfo(target, 0),
            again=True,
        )
        if not job:
            break
        progress(job.get("cur", 0), job.get("end", 0))
        time.sleep(_LOOK_EVERY)
    if not connection.call(what, lambda hypervisor: _is_merged(hypervisor, uuid, serial, merged, into), again=True):
        raise GuestFailed(f"Merging files of volume {serial} of guest {uuid} was broken off.")
    said = connection.call(what, lambda hypervisor: _flush(hypervisor, uuid, serial), again=True)
    if said:
        raise GuestFailed(
            f"What was merged of volume {serial} of guest {uuid} could not be written to disk.", details=said
        )


def merge_off(path: Path, merged: str | None) -> None:
    """Merges the files between ``path`` and ``merged`` (None: all files below) into ``path``, which no guest uses.

    Raises `GuestFailed` if ``merged`` is not below, or a file below is in another folder or of no known format.
    """
    layers = layers_below(path)
    if merged is None:
        qemu_img.pull(path, None, _MERGE_SECONDS)
        return
    found = next((layer for layer in layers if layer.path.name == merged), None)
    if found is None:
        raise GuestFailed(f"There is no file {merged} below {path.name}.", details=str(path))
    qemu_img.pull(path, (merged, found.disk_format), _MERGE_SECONDS)


def layers_below(path: Path) -> list[Layer]:
    """The files below the qcow2 file of a volume, from top to bottom.

    What the first bytes of a raw file look like is its guest's choice. So the formats are those that block storage wrote into the
    file above. Raises `GuestFailed` if it wrote none, or names a file in another folder.
    """
    found: list[Layer] = []
    layer = qemu_img.layer_below(path)
    while layer is not None:
        if layer.path.parent.resolve() != path.parent.resolve() or len(found) == _MOST_LAYERS:
            raise GuestFailed(
                f"The files of a volume can't be merged: {path.name} stands on files that are not beside it.",
                details=f"{path} stands on {layer.path}, {len(found)} files below",
            )
        found.append(layer)
        layer = qemu_img.layer_below(layer.path) if layer.disk_format == QCOW2 else None
    return found


def _pull(domain: Any, target: str, files: list[Path], by_name: dict[str, Path], base: str | None) -> str | None:
    below = files[1:]
    if (base is None and not below) or (below and below[0].name == base):
        return None
    if base is not None and base not in by_name:
        raise GuestFailed(f"There is no file {base} below {files[0].name}.")
    path = None if base is None else str(by_name[base])
    if path is None:
        domain.blockPull(target, 0, 0)
    else:
        _keeping_names(lambda flag: domain.blockRebase(target, path, 0, flag), libvirt.VIR_DOMAIN_BLOCK_REBASE_RELATIVE)
    return target


def _is_merged(hypervisor: Any, uuid: str, serial: str, merged: str | None, into: str | None) -> bool:
    domain = power.find(hypervisor, uuid)
    if domain is None or not domain.isActive():
        return False
    names = [path.name for path in chain(domain, serial)]
    return merged not in names if into is not None else names[1:2] == ([] if merged is None else [merged])


def _flush(hypervisor: Any, uuid: str, serial: str) -> str:
    """Has QEMU write the file's tables to disk. Returns what went wrong; empty: nothing.

    Block storage deletes the files that were merged, so the tables must not name them any more. QEMU writes them by itself only
    with the guest's next flush, and libvirt has no function for it.
    """
    domain = hypervisor.lookupByUUIDString(uuid)
    disk = ET.fromstring(device_of_serial(domain.XMLDesc(), serial) or "<disk/>")
    alias, target = disk.find("alias"), disk.find("target")
    name = (alias.get("name") or "") if alias is not None else ""
    if target is not None and target.get("bus") == "virtio":
        name = f"/machine/peripheral/{name}/virtio-backend"
    flag = libvirt_qemu.VIR_DOMAIN_QEMU_MONITOR_COMMAND_HMP
    said: str = libvirt_qemu.qemuMonitorCommand(domain, f"qemu-io -d {name} flush", flag)
    return said.strip()


def _keeping_names(work: Any, flag: int) -> None:
    """Keeps names without folders between files, as other hosts need them; files that have folders in their names keep those."""
    try:
        work(flag)
    except libvirt.libvirtError as error:
        if error.get_error_code() not in (libvirt.VIR_ERR_CONFIG_UNSUPPORTED, libvirt.VIR_ERR_OPERATION_INVALID):
            raise
        work(0)


def chain(domain: Any, serial: str) -> list[Path]:
    """The files of a guest's volume, beginning with the one that it writes to. Raises `GuestFailed` if it has none."""
    device = device_of_serial(domain.XMLDesc(), serial)
    element: ET.Element | None = None if device is None else ET.fromstring(device)
    found = []
    while element is not None:
        source = element.find("source")
        if source is not None and source.get("file"):
            found.append(Path(source.get("file") or ""))
        element = element.find("backingStore")
    if not found:
        raise GuestFailed(f"Guest {domain.UUIDString()} has no volume {serial} that is a file.")
    return found


def target_of(domain: Any, serial: str) -> str:
    """The device name of a guest's volume; empty: it does not have it."""
    target = ET.fromstring(device_of_serial(domain.XMLDesc(), serial) or "<disk/>").find("target")
    return (target.get("dev") or "") if target is not None else ""


def targets(domain: Any) -> list[str]:
    found = ET.fromstring(domain.XMLDesc()).iterfind("devices/disk/target")
    return [target.get("dev") or "" for target in found]

"""Files as an attacker makes them: every format of disk images that is known, whole, torn and mixed.

They are made here, byte by byte, and name the file ``secret``. `CONTENTS` says as what each may be accepted.
"""

from __future__ import annotations

import struct
from pathlib import Path

SECTOR = 512
MIB = 1 << 20
#: what Glance knows
DISK_FORMATS = ("ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "ploop", "iso", "gpt", "luks", "qed")
CREATE_TYPES = (
    *("monolithicSparse", "monolithicFlat", "streamOptimized", "twoGbMaxExtentSparse", "twoGbMaxExtentFlat", "vmfs"),
    *("vmfsSparse", "vmfsThin", "seSparse", "fullDevice", "partitionedDevice", "vmfsRaw", "vmfsRDM", "custom"),
)
EXTENT_TYPES = ("FLAT", "SPARSE", "ZERO", "VMFS", "VMFSSPARSE", "VMFSRDM", "VMFSRAW", "SESPARSE")


def vmdk_text(
    secret: Path | str, create_type: str = "monolithicFlat", extent: str = "FLAT", sectors: int = 2048
) -> bytes:
    """A VMDK that is only text, with one extent: the file ``secret``."""
    offset = " 0" if extent in ("FLAT", "VMFS") else ""
    lines = ("# Disk DescriptorFile", "version=1", "CID=fffffffe", "parentCID=ffffffff", f'createType="{create_type}"')
    extents = f'RW {sectors} {extent} "{secret}"{offset}'
    return "\n".join((*lines, "", "# Extent description", extents, "", "# The Disk Data Base", "#DDB", "")).encode()


def vmdk_binary(
    secret: Path | str, create_type: str = "monolithicSparse", *, version: int = 1, at_end: bool = False
) -> bytes:
    """A VMDK with a binary header, and the text in the second sector."""
    text = vmdk_text(secret, create_type, "SPARSE").ljust(20 * SECTOR, b"\0")
    grain_directory = 0xFFFFFFFFFFFFFFFF if at_end else 21
    header = struct.pack("<4sIIQQQQIQQQ", b"KDMV", version, 3, 2048, 128, 1, 20, 512, 21, grain_directory, 128)
    return (header.ljust(SECTOR, b"\0") + text).ljust(MIB, b"\0")


def qcow2(
    *,
    version: int = 3,
    size: int = MIB,
    backing: Path | str = "",
    features: int = 0,
    crypt_method: int = 0,
    length: int = 64 << 10,
) -> bytes:
    """The header of a qcow2 image, and nothing behind it but zeros."""
    name = str(backing).encode()
    at = SECTOR if name else 0
    header = struct.pack(
        ">4sIQIIQIIQQIIQ", b"QFI\xfb", version, at, len(name), 16, size, crypt_method, 1, 3 << 16, 1 << 16, 1, 0, 0
    )
    header += struct.pack(">QQQII", features, 0, 0, 4, 104)
    return (header.ljust(SECTOR, b"\0") + name).ljust(length, b"\0")[:length]


def vdi() -> bytes:
    header = bytearray(4096)
    header[:40] = b"<<< Oracle VM VirtualBox Disk Image >>>\n"
    struct.pack_into("<I", header, 0x40, 0xBEDA107F)
    struct.pack_into("<Q", header, 0x170, MIB)
    return bytes(header).ljust(MIB, b"\0")


def vhd() -> bytes:
    footer = bytearray(SECTOR)
    footer[:8] = b"conectix"
    struct.pack_into(">Q", footer, 40, MIB)
    return bytes(footer) + bytes(MIB - 2 * SECTOR) + bytes(footer)


def vhdx() -> bytes:
    content = bytearray(MIB)
    content[:8] = b"vhdxfile"
    struct.pack_into("<IIII", content, 192 << 10, 0x69676572, 0, 0, 0)
    return bytes(content)


def qed() -> bytes:
    return b"QED\0".ljust(MIB, b"\0")


def luks(version: int = 1) -> bytes:
    return struct.pack(">6sH32s32s32sII", b"LUKS\xba\xbe", version, b"aes", b"xts-plain64", b"sha256", 4096, 64).ljust(
        MIB, b"\0"
    )


def mbr(content: bytes = b"", *, gpt: bool = False, valid: bool = True) -> bytes:
    """A partition table on a disk that begins with ``content``."""
    disk = bytearray(content.ljust(MIB, b"\0"))
    if valid:
        entry = struct.pack("<B3BB3BII", 0, 0, 2, 0, 0xEE if gpt else 0x83, 0xFF, 0xFF, 0xFF, 1, 2047)
        disk[446:462] = entry
    disk[510:512] = b"\x55\xaa"
    if gpt:
        disk[512:520] = b"EFI PART"
    return bytes(disk)


def iso(content: bytes = b"") -> bytes:
    """ISO 9660, whose first 32 KiB may have anything."""
    disk = bytearray(content.ljust(MIB, b"\0"))
    disk[32 << 10 : (32 << 10) + 6] = b"\x01CD001"
    return bytes(disk)


SECRET = "/etc/causeway/secret"
#: name -> (content, the formats as which it may be accepted)
CONTENTS: dict[str, tuple[bytes, set[str]]] = {
    "zeros": (bytes(MIB), {"raw"}),
    "nothing": (b"", {"raw"}),
    "text": (b"an image\n" * 100, {"raw"}),
    "MBR": (mbr(), {"raw"}),
    "MBR without partitions": (mbr(valid=False), {"raw"}),
    "GPT": (mbr(gpt=True), {"raw"}),
    "ISO": (iso(), {"raw", "iso"}),
    "ISO with MBR": (iso(mbr()), {"raw", "iso"}),
    "qcow2": (qcow2(), {"qcow2"}),
    "qcow2 of version 2": (qcow2(version=2), {"qcow2"}),
    "qcow2 with lazy refcounts, corrupt, zstd": (qcow2(features=0b1011), {"qcow2"}),
    "qcow2 of version 1": (qcow2(version=1), set()),
    "qcow2 of version 4": (qcow2(version=4), set()),
    "qcow2 with a backing file": (qcow2(backing=SECRET), set()),
    "qcow2 of version 2 with a backing file": (qcow2(version=2, backing=SECRET), set()),
    "qcow2 on a URL": (qcow2(backing='json:{"driver":"nbd"}'), set()),
    "qcow2 with a data file": (qcow2(features=0b100), set()),
    "qcow2 with features that nobody knows": (qcow2(features=1 << 40), set()),
    "qcow2 that is encrypted": (qcow2(crypt_method=2), set()),
    "qcow2 whose header is torn": (qcow2(length=300), {"raw"}),
    "qcow2 of four bytes": (b"QFI\xfb", {"raw"}),
    "qcow2 with MBR": (mbr(qcow2(length=440)), set()),
    "qcow2 with ISO": (iso(qcow2()), set()),
    "qcow2 in an MBR with ISO": (iso(mbr(qcow2(length=440))), set()),
    "VDI": (vdi(), set()),
    "VHD": (vhd(), set()),
    "VHDX": (vhdx(), set()),
    "VHDX with ISO": (iso(b"vhdxfile"), set()),
    "QED": (qed(), set()),
    "LUKS": (luks(), set()),
    "LUKS 2": (luks(2), set()),
    "LUKS whose header is torn": (luks()[:20], set()),
    "VMDK with ISO": (iso(vmdk_binary(SECRET)[: 8 << 10]), set()),
    "VMDK with MBR": (mbr(vmdk_binary(SECRET)[:440]), set()),
    "VMDK of a version that nobody knows": (vmdk_binary(SECRET, version=9), set()),
    "VMDK whose tables are at its end": (vmdk_binary(SECRET, "streamOptimized", at_end=True), set()),
    # Too far behind to be seen, but opened as raw it is only text.
    "VMDK behind much text": (b"# a comment\n" * (3 << 20 >> 3) + vmdk_text(SECRET), {"raw"}),
    **{f"VMDK, text, {kind}": (vmdk_text(SECRET, kind), set()) for kind in CREATE_TYPES},
    **{f"VMDK, text, extent {kind}": (vmdk_text(SECRET, extent=kind), set()) for kind in EXTENT_TYPES},
    **{f"VMDK, binary, {kind}": (vmdk_binary(SECRET, kind), set()) for kind in CREATE_TYPES},
}

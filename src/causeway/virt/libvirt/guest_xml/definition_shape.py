"""All that `domain_xml` makes: elements, their attributes, the patterns of values.

The source of a live migration gets a definition from the target, and has its own libvirt read it. libvirt acts on what it reads:
it runs the emulator that a definition names, to learn what it can do. So a definition from another host must have this shape.
"""

from __future__ import annotations

from collections.abc import Mapping

from causeway.virt.libvirt.guest_xml import domain_xml, rbd_source, smbios
from causeway.virt.libvirt.guest_xml import foreign_values as values

_ANY = r"[^\x00-\x1f\x7f]*"
_WORD = r"[A-Za-z0-9_.-]+"
_NAME = r"[A-Za-z0-9_.:@+-]+"
_NUMBER = r"[0-9]{1,12}"
_CPUS = r"[0-9,^-]+"
# Absolute, and the path of nothing above it.
_PATH = r"/(?!(?:.*/)?\.\.(?:/|$))[^\x00-\x1f\x7f]+"
_HOST = r"[A-Za-z0-9_.:-]+"
_EMPTY = ""

# Below `domain`: path -> (pattern of the text, attribute -> pattern).
_SHAPE: dict[str, tuple[str, Mapping[str, str]]] = {
    "": (_EMPTY, {"type": r"kvm|qemu"}),
    "/name": (_ANY, {}),
    "/uuid": (r"[0-9a-f-]{36}", {}),
    "/title": (_ANY, {}),
    "/memory": (_NUMBER, {"unit": r"[KMG]iB"}),
    "/vcpu": (_NUMBER, {"cpuset": _CPUS}),
    "/memoryBacking": (_EMPTY, {}),
    "/memoryBacking/locked": (_EMPTY, {}),
    "/memoryBacking/nosharepages": (_EMPTY, {}),
    "/memoryBacking/hugepages": (_EMPTY, {}),
    "/memoryBacking/hugepages/page": (_EMPTY, {"size": _NUMBER, "unit": r"KiB", "nodeset": _CPUS}),
    "/cputune": (_EMPTY, {}),
    "/cputune/vcpupin": (_EMPTY, {"vcpu": _NUMBER, "cpuset": _CPUS}),
    "/cputune/emulatorpin": (_EMPTY, {"cpuset": _CPUS}),
    "/numatune": (_EMPTY, {}),
    "/numatune/memory": (_EMPTY, {"mode": r"strict", "nodeset": _CPUS}),
    "/numatune/memnode": (_EMPTY, {"cellid": _NUMBER, "mode": r"strict", "nodeset": _CPUS}),
    "/os": (_EMPTY, {}),
    "/os/type": (r"hvm", {"arch": r"x86_64", "machine": _WORD}),
    "/os/loader": (_PATH, {"readonly": r"yes", "type": r"pflash", "secure": r"yes"}),
    "/os/nvram": (_PATH, {"template": _PATH}),
    "/os/bootmenu": (_EMPTY, {"enable": r"yes"}),
    "/os/smbios": (_EMPTY, {"mode": r"sysinfo"}),
    "/sysinfo": (_EMPTY, {"type": r"smbios"}),
    "/sysinfo/system": (_EMPTY, {}),
    "/sysinfo/system/entry": (smbios.TEXT, {"name": "|".join(smbios.ENTRIES)}),
    "/features": (_EMPTY, {}),
    "/features/acpi": (_EMPTY, {}),
    "/features/apic": (_EMPTY, {}),
    "/features/smm": (_EMPTY, {"state": r"on"}),
    "/features/tcg": (_EMPTY, {}),
    "/features/tcg/tb-cache": (_NUMBER, {"unit": r"[KM]iB"}),
    "/cpu": (_EMPTY, {"mode": _WORD, "match": _WORD, "check": _WORD}),
    "/cpu/model": (_WORD, {"fallback": _WORD}),
    "/cpu/topology": (_EMPTY, {"sockets": _NUMBER, "cores": _NUMBER, "threads": _NUMBER, "dies": _NUMBER}),
    "/cpu/feature": (_EMPTY, {"policy": _WORD, "name": _WORD}),
    "/cpu/numa": (_EMPTY, {}),
    "/cpu/numa/cell": (
        _EMPTY,
        {"id": _NUMBER, "cpus": _CPUS, "memory": _NUMBER, "unit": r"KiB", "memAccess": r"shared"},
    ),
    "/clock": (_EMPTY, {"offset": r"utc"}),
    "/on_poweroff": (r"destroy", {}),
    "/on_reboot": (r"restart", {}),
    "/on_crash": (r"destroy", {}),
    "/devices": (_EMPTY, {}),
    "/devices/disk": (_EMPTY, {"type": r"file|block|network", "device": r"disk|cdrom|floppy"}),
    "/devices/disk/driver": (
        _EMPTY,
        {"name": r"qemu", "type": r"qcow2|raw", "cache": r"none|writeback|writethrough", "discard": r"unmap"},
    ),
    "/devices/disk/source": (
        _EMPTY,
        {"file": _PATH, "dev": _PATH, "protocol": r"rbd", "name": rbd_source.IMAGE},
    ),
    "/devices/disk/source/host": (_EMPTY, {"name": _HOST, "port": _NUMBER}),
    "/devices/disk/source/auth": (_EMPTY, {"username": _NAME}),
    "/devices/disk/source/auth/secret": (_EMPTY, {"type": r"ceph", "uuid": r"[0-9a-f-]{36}"}),
    "/devices/disk/encryption": (_EMPTY, {"format": r"luks"}),
    "/devices/disk/encryption/secret": (_EMPTY, {"type": r"passphrase", "uuid": r"[0-9a-f-]{36}"}),
    "/devices/disk/iotune": (_EMPTY, {}),
    "/devices/disk/target": (_EMPTY, {"dev": _WORD, "bus": _WORD}),
    "/devices/disk/readonly": (_EMPTY, {}),
    "/devices/disk/shareable": (_EMPTY, {}),
    "/devices/disk/serial": (_WORD, {}),
    "/devices/disk/boot": (_EMPTY, {"order": _NUMBER}),
    "/devices/disk/address": (
        _EMPTY,
        {"type": r"drive", "controller": r"0", "bus": r"0", "target": r"1", "unit": r"0"},
    ),
    "/devices/controller": (_EMPTY, {"type": r"scsi", "model": _WORD}),
    "/devices/interface": (_EMPTY, {"type": r"ethernet|bridge|direct|vdpa|vhostuser"}),
    "/devices/interface/mac": (_EMPTY, {"address": r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}"}),
    "/devices/interface/source": (
        _EMPTY,
        {
            "bridge": _WORD,
            "dev": r"[A-Za-z0-9_./-]+",
            "mode": r"passthrough|client|server",
            "type": r"unix",
            "path": _PATH,
        },
    ),
    "/devices/interface/virtualport": (_EMPTY, {"type": r"openvswitch"}),
    "/devices/interface/virtualport/parameters": (_EMPTY, {"interfaceid": _WORD}),
    "/devices/interface/target": (_EMPTY, {"dev": _WORD, "managed": r"no|yes"}),
    "/devices/interface/model": (_EMPTY, {"type": _WORD}),
    "/devices/interface/driver": (_EMPTY, {"queues": _NUMBER}),
    "/devices/interface/mtu": (_EMPTY, {"size": _NUMBER}),
    "/devices/serial": (_EMPTY, {"type": r"file|tcp"}),
    "/devices/console": (_EMPTY, {"type": r"file|tcp"}),
    "/devices/graphics": (_EMPTY, {"type": r"vnc", "autoport": r"yes", "listen": _HOST}),
    "/devices/graphics/listen": (_EMPTY, {"type": r"address", "address": _HOST}),
    "/devices/video": (_EMPTY, {}),
    "/devices/video/model": (_EMPTY, {"type": _WORD, "vram": _NUMBER}),
    "/devices/channel": (_EMPTY, {"type": r"unix"}),
    "/devices/channel/target": (_EMPTY, {"type": r"virtio", "name": r"org\.qemu\.guest_agent\.0"}),
    "/devices/tpm": (_EMPTY, {"model": _WORD}),
    "/devices/tpm/backend": (_EMPTY, {"type": r"emulator", "version": r"1\.2|2\.0", "persistent_state": r"yes"}),
    "/devices/tpm/backend/encryption": (_EMPTY, {"secret": r"[0-9a-f-]{36}"}),
    "/devices/rng": (_EMPTY, {"model": r"virtio"}),
    "/devices/rng/rate": (_EMPTY, {"bytes": _NUMBER, "period": _NUMBER}),
    "/devices/rng/backend": (r"/dev/urandom", {"model": r"random"}),
    "/devices/watchdog": (_EMPTY, {"model": _WORD, "action": _WORD}),
    "/devices/input": (_EMPTY, {"type": r"tablet", "bus": r"usb|virtio"}),
    "/devices/memballoon": (_EMPTY, {"model": r"virtio"}),
}
_CONSOLE: dict[str, tuple[str, Mapping[str, str]]] = {
    "/source": (
        _EMPTY,
        {"path": _PATH, "append": r"on", "mode": r"bind", "host": _HOST, "service": _NUMBER},
    ),
    "/protocol": (_EMPTY, {"type": r"raw"}),
    "/log": (_EMPTY, {"file": _PATH, "append": r"on"}),
    "/target": (_EMPTY, {"type": r"serial", "port": _NUMBER}),
}
_SHAPE |= {f"/devices/disk/iotune/{name}": (_NUMBER, {}) for name in domain_xml.LIMITS}
_SHAPE |= {f"/devices/{kind}{path}": row for kind in ("serial", "console") for path, row in _CONSOLE.items()}


def check(xml: str) -> None:
    """Raises `GuestRefused` for a definition that `domain_xml` does not make."""
    domain = values.parse(xml)
    if domain.tag != "domain":
        raise values.refused("a document", domain.tag)
    waiting = [("", domain)]
    while waiting:
        path, element = waiting.pop()
        if path not in _SHAPE:
            raise values.refused("a part", path)
        text, attributes = _SHAPE[path]
        values.matched((element.text or "").strip(), text, f"{element.tag} that")
        for name, value in element.attrib.items():
            if name not in attributes:
                raise values.refused(f"a {element.tag} whose {name}", value)
            values.matched(value, attributes[name], f"a {element.tag} whose {name}")
        waiting.extend((f"{path}/{child.tag}", child) for child in element)

"""The builds of UEFI that a host has, by the descriptions that QEMU's distributors install with them.

Source: QEMU, "firmware.json": what a description says, and that one of the same name in /etc goes before that in /usr/share.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from causeway.errors import GuestFailed
from causeway.hardware.firmware import SecureBoot

LOG = logging.getLogger(__name__)

FOLDERS = (Path("/usr/share/qemu/firmware"), Path("/etc/qemu/firmware"))
_ARCHITECTURE = "x86_64"
# A machine type without a version -> the name of its family in descriptions.
_FAMILIES = {"pc": "pc-i440fx", "q35": "pc-q35"}


@dataclass(frozen=True)
class Loader:
    """A build of UEFI. ``template``: the file of variables to begin with.

    ``is_secure``: it boots only what is signed with the keys in the template.
    """

    executable: Path
    template: Path
    is_secure: bool = False
    needs_smm: bool = False
    machines: tuple[str, ...] = ()


def loaders(folders: Iterable[Path] = FOLDERS) -> list[Loader]:
    """The builds of a host, the preferred ones first."""
    files = {path.name: path for folder in folders for path in folder.glob("*.json")}
    found = []
    for _name, path in sorted(files.items()):
        try:
            loader = _loader(json.loads(path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError) as failure:
            LOG.warning("The description of firmware %s is not understood: %s", path, failure)
            continue
        if loader is not None:
            found.append(loader)
    return found


def choose(found: list[Loader], machine: str, secure_boot: SecureBoot) -> Loader:
    """The build for a machine type. Raises `GuestFailed` if the host has none."""
    fitting = [loader for loader in found if any(fnmatchcase(full_name(machine), each) for each in loader.machines)]
    wants = [True, False] if secure_boot is SecureBoot.OPTIONAL else [secure_boot is SecureBoot.REQUIRED]
    for is_secure in wants:
        for loader in fitting:
            if loader.is_secure is is_secure:
                return loader
    what = "UEFI with secure boot" if secure_boot is SecureBoot.REQUIRED else "UEFI"
    raise GuestFailed(f"The host has no {what} for the machine type {machine} of the server.")


def full_name(machine: str) -> str:
    """A machine type as the patterns in descriptions have it, also if it names no version."""
    return f"{_FAMILIES[machine]}-any" if machine in _FAMILIES else machine


def _loader(described: dict[str, Any]) -> Loader | None:
    """The build that a description names; None: it can't be used (another architecture, not in flash, no variables, no keys)."""
    features, mapping = set(described.get("features", ())), described["mapping"]
    machines = tuple(
        str(machine)
        for target in described.get("targets", ())
        if target["architecture"] == _ARCHITECTURE
        for machine in target["machines"]
    )
    is_secure = "secure-boot" in features and "enrolled-keys" in features
    if (
        "uefi" not in described.get("interface-types", ())
        or mapping.get("device") != "flash"
        or "nvram-template" not in mapping
        or not machines
        or ("secure-boot" in features and not is_secure)
    ):
        return None
    files = [mapping[name] for name in ("executable", "nvram-template")]
    if any(each.get("format") != "raw" or not Path(each["filename"]).exists() for each in files):
        return None
    executable, template = (Path(each["filename"]) for each in files)
    return Loader(executable, template, is_secure, "requires-smm" in features, machines)

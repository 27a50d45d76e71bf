"""What a host must have so that os-brick can connect volumes of a type. os-brick itself finds out only when it connects one."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causeway.errors import ClaimRefused


@dataclass(frozen=True)
class Need:
    """``install``: what brings the programs and files. ``files``: patterns, of each of which there must be one."""

    install: str
    programs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def lacks(self) -> list[str]:
        programs = [name for name in self.programs if shutil.which(name) is None]
        return programs + [pattern for pattern in self.files if not any(Path("/").glob(pattern[1:]))]


_ISCSI = Need("install open-iscsi", ("iscsiadm",), ("/etc/iscsi/initiatorname.iscsi",))
_NVME = Need("install nvme-cli", ("nvme",))
# By names in lower case. What is not here os-brick looks for when it is asked for a connector.
NEEDS = {
    "nfs": Need("install nfs-common", ("mount.nfs",)),
    "iscsi": _ISCSI,
    "iser": _ISCSI,
    "fibre_channel": Need("the host needs a Fibre Channel adapter, and its driver", files=("/sys/class/fc_host/*",)),
    "nvme": _NVME,
    "nvmeof": _NVME,
    "scaleio": Need("PowerFlex's password is read from it", files=("/opt/emc/scaleio/openstack/connector.conf",)),
    "huaweisdshypervisor": Need(
        "install Huawei's SDS client", (os.environ.get("HUAWEISDSHYPERVISORCLI_PATH") or "/usr/local/bin/sds/sds_cli",)
    ),
}
# They say where a file or device of this host is.
_AT_PATH = frozenset({"local", "gpfs"})
# Their volumes are not on a host like this one.
_ELSEWHERE = frozenset({"vmdk"})


def check(protocol: str, data: dict[str, Any]) -> None:
    """Raises `ClaimRefused` if the host can't connect such a volume, and says what to install."""
    kind = protocol.lower()
    if kind in _ELSEWHERE:
        raise ClaimRefused(f"Guests of this hypervisor can't have volumes of the type '{protocol}'.")
    # A volume may bring its password along.
    need = NEEDS.get(kind) if "serverPassword" not in data else None
    lacks = [] if need is None else need.lacks()
    if need is not None and lacks:
        raise ClaimRefused(
            f"The host can't open volumes of the type '{protocol}'.",
            details=f"{', '.join(lacks)} is missing: {need.install}",
        )
    path = data.get("device_path")
    if kind in _AT_PATH and not (path and os.access(path, os.R_OK | os.W_OK)):
        raise ClaimRefused("The volume can't be opened on the host.", details=str(path))

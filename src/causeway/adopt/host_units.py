"""Units of systemd for a host that is taken over from Nova.

Causeway's unit conflicts with none of Nova's: systemd would stop the one when the other is started, and Causeway's must run
beside nova-compute, looking, before the host is taken. Instead systemd does not start nova-compute on a host that was taken, by
the mark that Causeway keeps there itself (`causeway.compute.adopting.ownership`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

#: where systemd keeps what it makes for a service
STATE_PATH = Path("/var/lib/causeway")
_HOMES = (Path("/home"), Path("/root"), Path("/run/user"))


def service(
    program: Path, config_files: Sequence[Path], state_path: Path, folders: Sequence[Path], nova_unit: str
) -> str:
    """Of Causeway's compute service. ``folders``: those that must be mounted before it starts."""
    options = " ".join(f"--config-file {quoted(path)}" for path in config_files)
    own = ["StateDirectory=causeway", "StateDirectoryMode=0711"] if state_path == STATE_PATH else []
    in_homes = any(path.is_relative_to(home) for path in folders for home in _HOMES)
    return "\n".join(
        [
            "# Made by `causeway adopt host-config`.",
            "[Unit]",
            "Description=Causeway compute: the guests of this host",
            "Wants=network-online.target",
            f"After=network-online.target libvirtd.service virtqemud.service openvswitch-switch.service {nova_unit}",
            f"RequiresMountsFor={' '.join(map(quoted, dict.fromkeys(folders)))}",
            "",
            "[Service]",
            "Type=exec",
            "# libvirt, os-vif and os-brick need root: they plug ports and connect volumes.",
            "User=root",
            "# For this host: proxies, REQUESTS_CA_BUNDLE and the like.",
            "EnvironmentFile=-/etc/default/causeway-compute",
            f"ExecStart={quoted(program)} compute {options}",
            "# Also when Placement or the hypervisor did not answer at the start.",
            "Restart=on-failure",
            "RestartSec=5",
            "# Guests are libvirt's and keep running; what volumes need (mounts, multipath) must not end with this process.",
            "KillMode=process",
            "TimeoutStopSec=120",
            "LimitNOFILE=65536",
            *own,
            "",
            "NoNewPrivileges=no",
            f"ProtectHome={'no' if in_homes else 'yes'}",
            "ProtectKernelModules=no",
            "LockPersonality=yes",
            "SystemCallArchitectures=native",
            "# Guests' disks stand on files here, and their QEMU has another account.",
            "UMask=0022",
            "",
            "[Install]",
            "WantedBy=multi-user.target",
            "",
        ]
    )


def fence(marker: Path) -> str:
    """A part of the unit of nova-compute: it is not started while ``marker`` is there."""
    return (
        "# Made by `causeway adopt host-config`. This host's nova-compute is not started while the host is Causeway's.\n"
        "# It may be again after `causeway adopt hand-back`, which deletes this mark.\n"
        f"[Unit]\nAssertPathExists=!{marker}\n"
    )


def quoted(path: Path) -> str:
    """A path as one word of a unit, with nothing in it that systemd replaces."""
    text = str(path).replace("%", "%%").replace("\\", "\\\\").replace('"', '\\"').replace("$", "$$")
    return f'"{text}"' if any(each.isspace() for each in text) or text != str(path) else text


__all__ = ["STATE_PATH", "fence", "quoted", "service"]

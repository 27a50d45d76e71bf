"""Firmware and TPM of simulated guests: files beside their disks, to which each boot adds a line.

``nvram`` has the variables of UEFI (``nvram-secure``: with secure boot), ``tpm2.0`` the state of a TPM of that version.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from causeway import durable
from causeway.hardware.firmware import Firmware, of_instance
from causeway.virt import driver as virt
from causeway.virt import kept_state


def names_of(firmware: Firmware) -> list[str]:
    """The names of the files of a guest with this firmware."""
    nvram = kept_state.nvram_of(firmware)
    return [*([nvram] if nvram else []), *([f"tpm{firmware.tpm.version}"] if firmware.tpm is not None else [])]


def boot(folder: Path, names: list[str]) -> None:
    """Adds a line to each file. Makes a file that does not exist: variables, or a TPM with a secret of its own."""
    for name in names:
        if not (folder / name).exists():
            durable.write(folder / name, f"made,id={secrets.token_hex(4)}\n")
        add(folder, name, f"boot,id={secrets.token_hex(4)}")


def add(folder: Path, name: str, line: str) -> None:
    durable.write(folder / name, (folder / name).read_bytes() + line.encode() + b"\n")


def lines(folder: Path, names: list[str]) -> dict[str, list[str]]:
    return {name: (folder / name).read_text().splitlines() for name in names if (folder / name).exists()}


def pack(folder: Path) -> bytes:
    """All files in a folder as one, to be sent; the folder records what was sent."""
    files = {path.name: path for pattern in ("nvram*", "tpm*") for path in folder.glob(pattern)}
    kept_state.note(folder, files)
    return kept_state.pack(files)


def take(folder: Path, spec: virt.GuestSpec) -> None:
    """Puts files that came from another host in their places, without those that the guest no longer has."""
    if spec.kept_state is None:
        return
    wanted = names_of(of_instance(spec.instance))
    content = {name: data for name, data in kept_state.unpack(spec.kept_state).items() if name in wanted}
    durable.make_folder(folder)
    kept_state.write(folder, content)
    kept_state.note(folder, content)


def faults(folder: Path) -> list[str]:
    """What is wrong with the files that should be in a folder."""
    return [f"{folder / name} is missing" for name in kept_state.noted(folder) if not (folder / name).exists()]

"""Firmware and TPM of simulated guests: files of lines beside their disks, to which each boot adds one.

``nvram`` has the variables of UEFI (``nvram-secure``: with secure boot), ``tpm2.0`` what a TPM of that version knows.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from causeway import durable
from causeway.hardware.firmware import Firmware, of_instance
from causeway.virt import driver as virt
from causeway.virt import kept_state


def names_of(firmware: Firmware) -> list[str]:
    nvram = kept_state.nvram_of(firmware)
    return [*([nvram] if nvram else []), *([f"tpm{firmware.tpm.version}"] if firmware.tpm is not None else [])]


def boot(folder: Path, names: list[str]) -> None:
    """What is not there is made: empty variables, a TPM with a secret of its own."""
    for name in names:
        if not (folder / name).exists():
            durable.write(folder / name, f"made,id={secrets.token_hex(4)}\n")
        add(folder, name, f"boot,id={secrets.token_hex(4)}")


def add(folder: Path, name: str, line: str) -> None:
    durable.write(folder / name, (folder / name).read_bytes() + line.encode() + b"\n")


def lines(folder: Path, names: list[str]) -> dict[str, list[str]]:
    return {name: (folder / name).read_text().splitlines() for name in names if (folder / name).exists()}


def pack(folder: Path) -> bytes:
    files = {path.name: path for pattern in ("nvram*", "tpm*") for path in folder.glob(pattern)}
    kept_state.note(folder, files)
    return kept_state.pack(files)


def take(folder: Path, spec: virt.GuestSpec) -> None:
    """Puts in its place what came from another host, if anything did, but for what the guest will not have any more."""
    if spec.kept_state is None:
        return
    wanted = names_of(of_instance(spec.instance))
    content = {name: data for name, data in kept_state.unpack(spec.kept_state).items() if name in wanted}
    durable.make_folder(folder)
    kept_state.write(folder, content)
    kept_state.note(folder, content)


def faults(folder: Path) -> list[str]:
    return [f"{folder / name} is missing" for name in kept_state.noted(folder) if not (folder / name).exists()]

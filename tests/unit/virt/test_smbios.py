"""Whose serial number guests see ([libvirt] sysinfo_serial)."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.errors import Misconfigured
from causeway.virt.libvirt.guest_xml.smbios import Serial, host_serial

BOARD = "30313436-3631-5a43-3333-303330344c42"
KNOWN = f"<capabilities><host><uuid>{BOARD}</uuid></host></capabilities>"
UNKNOWN = "<capabilities><host/></capabilities>"


@pytest.fixture
def machine_id(tmp_path: Path) -> Path:
    path = tmp_path / "machine-id"
    path.write_text("0123456789abcdef0123456789abcdef\n")
    return path


@pytest.mark.parametrize(
    ("choice", "number"),
    [
        (Serial.NONE, None),
        (Serial.UNIQUE, None),
        (Serial.OS, "01234567-89ab-cdef-0123-456789abcdef"),
        (Serial.AUTO, "01234567-89ab-cdef-0123-456789abcdef"),
        (Serial.HARDWARE, BOARD),
    ],
)
def test_the_serial_number_is_the_one_that_the_operator_chose(
    choice: Serial, number: str | None, machine_id: Path
) -> None:
    assert host_serial(choice, KNOWN, machine_id) == number


def test_a_host_without_a_system_number_has_that_of_its_board(tmp_path: Path) -> None:
    assert host_serial(Serial.AUTO, KNOWN, tmp_path / "none") == BOARD


@pytest.mark.parametrize("choice", [Serial.OS, Serial.AUTO, Serial.HARDWARE])
@pytest.mark.parametrize("content", [None, "", "nonsense"])
def test_a_host_without_the_number_does_not_start(choice: Serial, content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "machine-id"
    if content is not None:
        path.write_text(content)
    with pytest.raises(Misconfigured):
        host_serial(choice, UNKNOWN, path)

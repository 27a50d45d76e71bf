"""Consoles of real guests: what listens where, and what becomes of it when the guest goes."""

from __future__ import annotations

import socket

import pytest

from causeway.errors import GuestFailed
from causeway.model.console import ConsoleType
from causeway.virt.live_guest import LiveOptions
from tests.integration.libvirt.lab_guests import Cloud, Net
from tests.integration.libvirt.lab_journeys import no_word, prepared

pytestmark = pytest.mark.timeout(240)

# Of one answer: emulated guests on a busy machine take their time.
SECONDS = 300.0


def read_until(console: socket.socket, wanted: bytes) -> bytes:
    seen = b""
    while wanted not in seen:
        data = console.recv(4096)
        assert data, f"it ended; read before: {seen!r}"
        seen += data
    return seen


def greeting(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address, timeout=SECONDS) as connection:
        return connection.recv(12)


def test_a_guest_shows_its_screen_while_it_runs(cloud: Cloud) -> None:
    guest = cloud.guest()
    with pytest.raises(GuestFailed, match="does not run"):
        guest.driver.console_listener(guest.uuid, ConsoleType.NOVNC)
    guest.spawn()
    address = guest.driver.console_listener(guest.uuid, ConsoleType.NOVNC)
    assert greeting(address) == b"RFB 003.008\n"
    # Asked again it is the same.
    assert guest.driver.console_listener(guest.uuid, ConsoleType.NOVNC) == address
    guest.driver.power_off(guest.uuid, timeout=0)
    with pytest.raises(GuestFailed, match="does not run"):
        guest.driver.console_listener(guest.uuid, ConsoleType.NOVNC)


def test_what_is_typed_at_its_serial_console_is_echoed_and_logged(cloud: Cloud) -> None:
    first, second = cloud.guest(), cloud.guest()
    second.driver = first.driver
    first.spawn()
    second.spawn()
    addresses = {each.uuid: each.driver.console_listener(each.uuid, ConsoleType.SERIAL) for each in (first, second)}
    assert len(set(addresses.values())) == 2
    with socket.create_connection(addresses[first.uuid], timeout=SECONDS) as console:
        console.sendall(b"good morning\r")
        read_until(console, b"good morning")
        first.driver.reboot(first.spec(), hard=False, timeout=60)
        read_until(console, b"CAUSEWAY-SHUTDOWN")
        # It ends with the guest's process.
        while console.recv(4096):
            pass
    said = first.wait_for_boot(2)
    assert "good morning" in said.text
    assert "CAUSEWAY-SHUTDOWN" in said.text
    with socket.create_connection(
        first.driver.console_listener(first.uuid, ConsoleType.SERIAL), timeout=SECONDS
    ) as console:
        console.sendall(b"again\r")
        read_until(console, b"again")


def test_both_go_with_a_guest_that_moves_while_it_runs(cloud: Cloud, network: Net) -> None:
    guest = cloud.guest(vifs=[network.port()])
    guest.spawn()
    here = {kind: guest.driver.console_listener(guest.uuid, kind) for kind in ConsoleType}
    source, target = cloud.drivers
    source.live_migrate(guest.spec(), prepared(guest, target), LiveOptions(), no_word)
    source.destroy(guest.uuid, guest.vifs, [], destroy_disks=True)
    guest.driver = target
    assert greeting(guest.driver.console_listener(guest.uuid, ConsoleType.NOVNC)) == b"RFB 003.008\n"
    there = guest.driver.console_listener(guest.uuid, ConsoleType.SERIAL)
    assert there != here[ConsoleType.SERIAL]
    with socket.create_connection(there, timeout=SECONDS) as console:
        console.sendall(b"arrived\r")
        read_until(console, b"arrived")
    # It is logged there, too.
    guest.wait(lambda said: "arrived" in said.text)

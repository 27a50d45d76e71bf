"""Calls of libvirtd, here libvirt's own driver for tests: what happens to one whose guest disappears meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("libvirt")

import libvirt

from causeway.errors import GuestFailed
from causeway.virt.libvirt import power
from causeway.virt.libvirt.connection import Connection
from causeway.virt.libvirt.live.live_settings import LiveSettings
from causeway.virt.libvirt.live.migration import LiveMigrations
from causeway.virt.live_guest import Presence
from tests.unit.virt.libvirt_hypervisor import UUID, TestHypervisor


@pytest.fixture
def connection(hypervisor: TestHypervisor, monkeypatch: pytest.MonkeyPatch) -> Connection:
    """A hypervisor whose guest disappears as soon as it was found, as one that is handed over to another host does."""
    find = power.find

    def find_and_lose(opened: Any, uuid: str) -> Any:
        domain = find(opened, uuid)
        if domain is not None:
            domain.destroy()
            domain.undefine()
        return domain

    monkeypatch.setattr(power, "find", find_and_lose)
    return hypervisor


LOOKS: dict[str, tuple[Callable[[Connection], object], object]] = {
    "presence": (lambda each: LiveMigrations(each, LiveSettings(), Path).presence(UUID), Presence.ABSENT),
    "power state": (lambda each: power.state(each, UUID), None),
    "in transit": (lambda each: power.check_not_in_transit(each, UUID), None),
    "pull the plug": (lambda each: power.pull_plug(each, UUID), None),
    "destroy": (lambda each: power.destroy_and_undefine(each, UUID), None),
}


@pytest.mark.parametrize(("look", "found"), LOOKS.values(), ids=LOOKS)
def test_a_guest_that_disappears_while_it_is_looked_at_is_not_there(
    connection: Connection, look: Callable[[Connection], object], found: object
) -> None:
    assert look(connection) == found


def test_a_list_of_guests_from_which_one_disappears_is_made_anew(connection: Connection) -> None:
    def look(hypervisor: Any) -> list[str]:
        domains = hypervisor.listAllDomains()
        power.find(hypervisor, UUID)
        return [domain.UUIDString() for domain in domains if domain.state()]

    assert UUID not in connection.call("list its guests", look, again=True)


def test_a_call_that_must_not_be_repeated_is_not(connection: Connection) -> None:
    calls: list[str] = []

    def stop(hypervisor: Any) -> None:
        calls.append("stop")
        power.find(hypervisor, UUID).suspend()

    with pytest.raises(GuestFailed, match="failed to stop"):
        connection.call("stop", stop)
    assert calls == ["stop"]


def test_a_call_that_needs_a_guest_fails_without_it(connection: Connection) -> None:
    connection.call("destroy", lambda hypervisor: power.find(hypervisor, UUID), again=True)
    with pytest.raises(GuestFailed, match="failed to interrupt") as failure:
        connection.call("interrupt", lambda hypervisor: hypervisor.lookupByUUIDString(UUID), again=True)
    assert isinstance(failure.value.__cause__, libvirt.libvirtError)

"""A host that starts waits to hear what it missed; a conductor that does not know the question is not asked again."""

from __future__ import annotations

import subprocess
import threading
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from causeway import errors
from causeway.compute.guests import build
from causeway.compute.host import Host
from causeway.compute.upkeep import missed_orders
from causeway.compute.upkeep.missed_orders import MissedOrdersEndpoint, catch_up
from causeway.context import RequestContext
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.missed import Missed, MissedOrder
from causeway.model.network import Vif
from causeway.model.states import PowerState
from causeway.virt.driver import GuestFacts


class Conductor:
    def __init__(self, *answers: errors.CausewayError | list[Any]) -> None:
        self.answers = list(answers)

    def missed_orders(self, _context: object, *, host: str) -> list[Any]:
        assert host == "host"
        answer = self.answers.pop(0)
        if isinstance(answer, errors.CausewayError):
            raise answer
        return answer


def started(conductor: Conductor) -> None:
    host = SimpleNamespace(name="host", conductor=conductor, stopping=threading.Event())
    catch_up(cast(Host, host), cast(MissedOrdersEndpoint, None))


def test_a_host_that_starts_waits_to_hear_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missed_orders, "PAUSE", 0.0)
    conductor = Conductor(errors.RpcTimeout("missed_orders", "conductor", 60), errors.DatabaseFailed("It is gone."), [])
    started(conductor)
    assert conductor.answers == []


def test_a_host_does_not_begin_because_a_conductor_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missed_orders, "PAUSE", 0.0)
    conductor = Conductor(
        errors.CausewayError("missed_orders failed unexpectedly: KeyError."),
        errors.CausewayError("The answer to missed_orders has an unexpected form: Expected `str`"),
        [],
    )
    started(conductor)
    assert conductor.answers == []


class Driver:
    """Knows the guests of some servers; stashed disks of others can't be put back."""

    def __init__(self, guests: dict[str, PowerState], broken: Exception) -> None:
        self.guests, self._broken = guests, broken
        self.restored: list[str] = []

    def inspect(self, uuid: str) -> GuestFacts:
        return GuestFacts(uuid, self.guests.get(uuid))

    def power_off(self, uuid: str, timeout: float) -> None:
        assert timeout == 0
        self.guests[uuid] = PowerState.SHUTDOWN

    def restore_stashed_disks(self, uuid: str) -> None:
        if uuid == "broken":
            raise self._broken
        self.restored.append(uuid)


def server(uuid: str) -> Instance:
    return Instance(uuid, "project", "user", "vm", Flavor("1", "small", 1, 128, 1))


def endpoint_of(driver: Driver) -> MissedOrdersEndpoint:
    endpoint = MissedOrdersEndpoint.__new__(MissedOrdersEndpoint)
    host = SimpleNamespace(
        name="host",
        driver=driver,
        lock=lambda _uuid: nullcontext(),
        offers=SimpleNamespace(end_all=lambda _uuid: None),
    )
    endpoint._host = cast(Host, host)
    return endpoint


@pytest.mark.parametrize(
    "broken",
    [
        errors.GuestFailed("It broke."),
        OSError("The disk is full."),
        subprocess.CalledProcessError(1, "qemu-img"),
        KeyError("a mistake"),
    ],
)
def test_an_order_that_fails_keeps_nobody_from_the_others(broken: Exception) -> None:
    driver = Driver({}, broken)
    orders = [MissedOrder(uuid, Missed.RESTORE_DISKS, server(uuid)) for uuid in ("one", "broken", "two")]
    assert endpoint_of(driver).carry_out_missed(RequestContext(), orders=orders) == ["one", "two"]
    assert driver.restored == ["one", "two"]


def test_a_guest_that_is_only_to_be_off_keeps_all_it_has() -> None:
    guests = {"runs": PowerState.RUNNING, "paused": PowerState.PAUSED, "suspended": PowerState.SUSPENDED}
    driver = Driver(dict(guests), KeyError())
    orders = [MissedOrder.stop(server(uuid)) for uuid in (*guests, "not there")]
    endpoint_of(driver).carry_out_missed(RequestContext(), orders=orders)
    assert driver.guests == {
        "runs": PowerState.SHUTDOWN,
        "paused": PowerState.SHUTDOWN,
        "suspended": PowerState.SUSPENDED,
    }


def test_ports_leave_a_host_that_was_off_but_devices_of_another_host_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    monkeypatch.setattr(
        build, "destroy", lambda _host, gone, _devices: left.extend(vif.id for vif in gone.network_info)
    )
    vifs = [
        Vif("plain", "fa:16:3e:00:00:01", "network", vif_type="ovs"),
        Vif("device", "fa:16:3e:00:00:02", "network", vif_type="hw_veb", vnic_type="direct"),
    ]
    order = MissedOrder("one", Missed.DESTROY, replace(server("one"), network_info=vifs))
    assert endpoint_of(Driver({}, KeyError())).carry_out_missed(RequestContext(), orders=[order]) == ["one"]
    assert left == ["plain"]


def test_what_was_done_and_can_not_be_said_keeps_no_host_from_starting() -> None:
    class Deaf(Conductor):
        def orders_carried_out(self, _context: object, *, host: str, ids: list[str]) -> None:
            assert (host, ids) == ("host", ["one"])
            raise errors.RpcTimeout("orders_carried_out", "conductor", 60)

    driver = Driver({}, KeyError())
    host = SimpleNamespace(
        name="host",
        conductor=Deaf([MissedOrder("one", Missed.RESTORE_DISKS, server("one"))]),
        stopping=threading.Event(),
    )
    catch_up(cast(Host, host), endpoint_of(driver))
    assert driver.restored == ["one"]

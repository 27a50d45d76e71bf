"""What is made of echoes, of hypervisors' events and of steps."""

from __future__ import annotations

import os
import time

import pytest

from benchmarks.silence.__main__ import ROUND
from benchmarks.silence.echoes import Echoes
from benchmarks.silence.figures import Migration, Stretch, spread, steps_of, table_of
from benchmarks.silence.standstill import Event, GuestEvents, standstill

SOURCE, TARGET = "host1", "host2"


def heard_of(*said: tuple[float, str, str]) -> list[Event]:
    return [Event(*each) for each in said]


def test_a_guest_stands_still_from_its_pause_at_the_source_until_it_runs_at_the_target() -> None:
    events = heard_of(
        (1.0, TARGET, "started"),
        (2.0, SOURCE, "suspended"),
        (2.5, TARGET, "suspended"),
        (3.0, TARGET, "resumed"),
        (3.1, SOURCE, "stopped"),
    )
    assert standstill(events, SOURCE, TARGET) == (2.0, 3.0)


def test_a_pause_in_which_a_guest_did_not_leave_does_not_count() -> None:
    events = heard_of(
        (1.0, SOURCE, "suspended"), (1.2, SOURCE, "resumed"), (2.0, SOURCE, "stopped"), (3.0, TARGET, "resumed")
    )
    assert standstill(events, SOURCE, TARGET) == (2.0, 3.0)


def test_nothing_is_said_of_a_guest_that_did_not_arrive() -> None:
    assert standstill(heard_of((1.0, SOURCE, "suspended")), SOURCE, TARGET) is None
    assert standstill(heard_of((1.0, TARGET, "resumed")), SOURCE, TARGET) is None


def test_events_of_other_guests_are_not_noted() -> None:
    events = GuestEvents("mine")
    events.note(SOURCE, "another", 3)
    events.note(SOURCE, "mine", 3)
    assert [(event.host, event.name) for event in events.since(0.0)] == [(SOURCE, "suspended")]
    assert events.since(time.monotonic() + 1) == []


def test_steps_are_timed_from_the_beginning_of_the_silence() -> None:
    found = [("Later", 14.0, 15.0), ("SaveGuest", 9.5, 11.0), ("Before", 8.0, 10.0), ("WakeGuest", 11.0, 12.25)]
    assert steps_of(found, (10.0, 12.0)) == (Stretch("SaveGuest", -0.5, 1.0), Stretch("WakeGuest", 1.0, 2.25))


def test_several_migrations_are_shown_by_median_and_range() -> None:
    assert spread([]) == ""
    assert spread([0.5]) == "0.50"
    assert spread([3.0, 1.0, 1.5]) == "1.50 (1.00 to 3.00)"


def test_a_table_has_a_row_for_each_network_and_case() -> None:
    found = [
        Migration(network, case, silent=2.0, still=1.5, whole=9.0, load=1.0)
        for network in ("ovn", "lab")
        for case in ("live", "near-live", "live")
    ]
    rows = list(zip(*(column.cells for column in table_of(found).columns), strict=True))
    assert [row[:3] for row in rows] == [
        ("ovn", "live", "2"),
        ("ovn", "near-live", "1"),
        ("lab", "live", "2"),
        ("lab", "near-live", "1"),
    ]
    assert rows[1][3:] == ("2.00", "1.50", "0.50", "1.0 to 1.0")


def test_a_round_ends_where_it_began_and_is_heard_from_a_third_host() -> None:
    hosts = [each[:2] for each in ROUND.values()]
    assert [target for _, target in hosts] == [source for source, _ in [*hosts[1:], hosts[0]]]
    assert all(len(set(each)) == 3 for each in ROUND.values())


@pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets are root's")
def test_a_machine_that_answers_is_heard() -> None:
    with Echoes((), "127.0.0.1", "127.0.0.1") as echoes:
        began = time.monotonic()
        echoes.wait_for(began, 3, 30)
        heard = echoes.heard()
    assert heard == sorted(heard)
    assert sum(at > began for at in heard) >= 3

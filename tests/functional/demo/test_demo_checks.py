"""The demonstration's checks can fail: what is left behind is found, and what a guest says is read as it is meant."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from rich.console import Console

from causeway.cli.demo.chapter import Journey, Traveller
from causeway.cli.demo.cloud import DemoCloud
from causeway.cli.demo.evidence import Counted, Traces
from causeway.cli.demo.guest import last_report
from causeway.cli.demo.screen import Screen
from causeway.cli.demo.shared_disks import DiskMove, disk_moves
from causeway.cli.demo.ticks import Tick, last_tick
from causeway.cli.demo.timeline import seen_from_outside
from causeway.embedded.settings import StateDir
from causeway.virt.lab.observer import longest_silence

SERVER = "11111111-2222-3333-4444-555555555555"
OTHER = "99999999-2222-3333-4444-555555555555"

CONSOLE = """\
SeaBIOS (version 1.16)
CAUSEWAY-GUEST boot=1 vcpus=1 memory_mb=128 mac=fa:16:3e:00:00:01 ip=10.0.0.5 hostname=one
CAUSEWAY-MARKER disk=vda lines=1 first=causeway-marker abc
CAUSEWAY-READY
CAUSEWAY-GUEST boot=2 vcpus=2 memory_mb=192 mac=fa:16:3e:00:00:01 ip=10.0.0.5 hostname=one
CAUSEWAY-MARKER disk=vda lines=2 first=causeway-marker abc
CAUSEWAY-MARKER disk=vdb lines=7 first=causeway-marker def boot 1
"""


@pytest.fixture
def traces(tmp_path: Path) -> Traces:
    with sqlite3.connect(tmp_path / "cell1.sqlite") as connection:
        connection.executescript(
            f"""
            create table instances (id integer primary key, uuid text, display_name text);
            create table actions (id integer primary key, instance_uuid text);
            create table events (id integer primary key, action_id integer references actions(id), event text);
            insert into instances values (1, '{OTHER}', 'other');
            """
        )
    return Traces(DemoCloud(StateDir(tmp_path), "simulated"), admin=None, server=SERVER, migrations=["migration-1"])


def test_the_last_boot_counts() -> None:
    report = last_report(CONSOLE)

    assert (report.boot, report.vcpus, report.memory_mb) == (2, 2, 192)
    assert (report.lines("vda"), report.first("vda")) == (2, "causeway-marker abc")
    assert (report.lines("vdb"), report.first("vdb")) == (7, "causeway-marker def boot 1")
    assert not report.ready, "the second boot did not come to its end"


def test_what_the_guest_has_not_said_to_the_end_does_not_count() -> None:
    half = CONSOLE[: CONSOLE.rindex("mac=")]
    assert last_report(half).boot == 1
    assert last_report(f"{half}mac=fa:16:3e:00:00:01 ip=10.0.").ip == "10.0.0.5"


def test_a_disk_without_a_marker_has_no_lines() -> None:
    assert last_report("").lines("vda") == 0


def test_a_cell_without_the_server_has_no_records_of_it(traces: Traces) -> None:
    assert traces.records("cell1") == []


def test_a_record_that_names_the_server_in_any_column_is_found(traces: Traces) -> None:
    with sqlite3.connect(traces.cloud.state.path / "cell1.sqlite") as connection:
        connection.execute("insert into actions values (1, ?)", (SERVER,))
        connection.execute("insert into instances values (2, ?, ?)", (OTHER, f"copy of {SERVER}"))

    assert sorted(traces.records("cell1")) == ["actions: 1", "instances: 1"]


def test_a_record_whose_parent_was_deleted_is_found(traces: Traces) -> None:
    with sqlite3.connect(traces.cloud.state.path / "cell1.sqlite") as connection:
        connection.execute("insert into events values (1, 5, 'compute_finish_resize')")

    assert traces.records("cell1") == ["events: row 1 without its actions"]


@pytest.mark.parametrize(
    "orphan",
    [
        f"hosts/cell1-host1/disks/{SERVER}/root.json",
        f"hosts/cell1-host1/guests/{SERVER}.json",
        f"lab/hosts/cell1-host1/instances/{SERVER}/disk",
        f"lab/hosts/cell1-host1/etc/qemu/instance-{SERVER}.xml",
    ],
)
def test_a_file_that_a_host_kept_is_found(traces: Traces, orphan: str) -> None:
    path = traces.cloud.state.path / orphan
    path.parent.mkdir(parents=True)
    path.write_text("left")

    assert traces.files("cell1-host1") != []
    assert traces.files("cell2-host1") == []


def test_a_guest_that_is_still_defined_is_found_by_its_definition(traces: Traces) -> None:
    definition = traces.cloud.state.lab / "hosts" / "cell1-host1" / "etc" / "qemu" / "instance-00000001.xml"
    definition.parent.mkdir(parents=True)
    definition.write_text(f"<domain><uuid>{SERVER}</uuid></domain>")

    assert traces.files("cell1-host1") == ["lab/hosts/cell1-host1/etc/qemu/instance-00000001.xml"]


def test_a_hypervisors_log_may_stay(traces: Traces) -> None:
    log = traces.cloud.state.lab / "hosts" / "cell1-host1" / "log" / "qemu" / f"instance-{SERVER}.log"
    log.parent.mkdir(parents=True)
    log.write_text("qemu")

    assert traces.files("cell1-host1") == []


def test_allocations_of_the_server_and_of_its_migrations_are_found(traces: Traces) -> None:
    assert traces.consumers({OTHER: {}, "migration-1": {}}) == ["migration-1"]
    assert traces.consumers({SERVER: {}}) == [SERVER]


def test_more_than_one_guest_of_a_server_is_seen(traces: Traces) -> None:
    assert traces.guests() == []
    for host in ("cell1-host1", "cell1-host2"):
        path = traces.cloud.state.path / "hosts" / host / "guests" / f"{SERVER}.json"
        path.parent.mkdir(parents=True)
        path.write_text("{}")

    assert traces.guests() == ["cell1-host1", "cell1-host2"]


def test_the_last_whole_tick_counts() -> None:
    first, second = (f"TICK id=a n={n} memory=kept disk=kept lines={n}\n" for n in (1, 2))
    assert last_tick(f"boot\n{first}{second[:-4]}") == Tick("a", 1, "kept", "kept", 1)
    assert last_tick(f"{first}{second}TI") == Tick("a", 2, "kept", "kept", 2)
    assert last_tick(CONSOLE) is None


def test_a_silence_counts_from_the_beginning_of_the_move_in_which_it_ended() -> None:
    heard = [0.0, 0.1, 3.1, 3.2, 4.2, 4.3]
    assert longest_silence(heard, 0.0) == (0.1, 3.1)
    # One that began earlier counts from then on only.
    assert longest_silence(heard, 2.0) == (2.0, 3.1)
    assert longest_silence(heard, 3.15) == (3.2, 4.2)
    assert longest_silence([1.0], 0.0) == (0.0, 0.0)


def test_the_table_has_each_move_that_a_guest_could_notice() -> None:
    def move(recipe: str, **steps: int) -> dict[str, object]:
        done = [{"step": name, "phase": "do", "bytes_done": count} for name, count in steps.items()]
        return {"recipe": recipe, "steps": done}

    server = Traveller("one", "volume", journeys=[Journey(7.5), Journey(0.25, 1234567)])
    moves = [
        move("resize", CopyWhileRunning=5000, HandOver=300, FinishAtTarget=300),
        move("confirm_resize"),
        move("live_migration", MigrateGuest=17),
    ]
    rows = [list(column.cells) for column in seen_from_outside({"one": moves}, [server]).columns]
    assert rows == [
        ["one: resize", "one: live_migration"],
        ["7.50 s", "0.25 s"],
        ["5,000", "1,234,567"],
        ["300", ""],
    ]


def test_bytes_of_disks_are_distinguished_from_those_of_memory() -> None:
    def move(recipe: str, **steps: int) -> dict[str, object]:
        done = [{"step": name, "phase": "do", "bytes_done": count, "seconds": 0.5} for name, count in steps.items()]
        return {"recipe": recipe, "steps": done, "migration_uuid": recipe}

    counted = {
        "resize": Counted("a", "b", None, None),
        "confirm_resize": Counted("a", "b", None, None),
        "revert_resize": Counted("a", "b", None, None),
        "near_live_migration": Counted("b", "a", None, 900),
        "live_migration": Counted("b", "a", 40, 900),
    }
    moves = [
        move("resize", CopyWhileRunning=5000, HandOver=300, FinishAtTarget=0),
        move("confirm_resize"),
        move("revert_resize", DestroyAtTarget=0, RestoreAtSource=0),
        move("near_live_migration", CopyWhileRunning=70, SaveGuest=907, WakeGuest=0),
        move("live_migration", MigrateGuest=940),
    ]
    assert disk_moves("one", moves, counted) == [
        DiskMove("one", "resize", "a", "b", 5300, 1.0),
        DiskMove("one", "revert_resize", "b", "a", 0, 1.0),
        DiskMove("one", "near_live_migration", "b", "a", 77, 1.0),
        DiskMove("one", "live_migration", "b", "a", 40, None),
    ]


def test_what_a_host_has_of_the_server_in_shared_storage_is_found(
    traces: Traces, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traces.cloud, "in_storage", lambda host, server: [f"{server}_disk of {host}"])

    assert traces.files("cell1-host1") == [f"{SERVER}_disk of cell1-host1"]


def test_checks_are_counted(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as out:
        screen = Screen(Console(file=out))
        screen.check("this holds", True)
        screen.check("this does not", False, "seen [that]")

    assert (screen.held, screen.failed) == (1, ["this does not"])
    assert "✗ this does not (seen [that])" in (tmp_path / "out").read_text()

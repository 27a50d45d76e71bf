"""The judge of operations: sees what is wrong with a server, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from tests.faults.answers import Answer
from tests.faults.cases import FORWARD, NEITHER, ROLLED_BACK, Case
from tests.faults.complaints import LEAKED, LOST, STUCK
from tests.faults.operations.judge import complaints, end_of
from tests.faults.operations.matrix import BATCH, batches_of
from tests.faults.operations.subjects import Subject
from tests.faults.operations.table import OPERATIONS
from tests.faults.world import Holding

BY_NAME = {operation.name: operation for operation in OPERATIONS}
SITE: Any = SimpleNamespace(member=SimpleNamespace(current_project_id="ours"))
RUNNING = Holding(
    status="ACTIVE",
    task=None,
    fault=None,
    host="host1",
    vcpus=1,
    addresses={"fa:16:3e:00:00:01"},
    ports_addresses={"fa:16:3e:00:00:01"},
    recorded_volumes=[],
    guests={"host1": "RUNNING"},
    devices={"host1": ["port"]},
    disks={"host1": ["disks"]},
    marks=1,
    allocations={"host1": 1},
    ports={"port": ("host1", "ACTIVE")},
    attachments=[],
    volumes={},
    images=[],
    snapshots=[],
    unnamed=[],
    owners={"ours"},
)
GONE = replace(
    RUNNING,
    status=None,
    host=None,
    vcpus=0,
    addresses=set(),
    ports_addresses=set(),
    guests={},
    devices={},
    disks={},
    marks=0,
    allocations={},
    ports={},
    owners=set(),
)
OFFLOADED = replace(
    GONE,
    status="SHELVED_OFFLOADED",
    vcpus=1,
    addresses=RUNNING.addresses,
    ports_addresses=RUNNING.addresses,
    ports={"port": ("", "DOWN")},
    images=[("name-shelved", "active")],
    owners={"ours"},
)


def _kinds(operation: str, now: Holding, before: Holding = RUNNING, answer: Answer | None = None) -> set[str]:
    subject = Subject(name="name", uuid="uuid", before=before, answer=answer)
    return {each.kind for each in complaints(SITE, subject, BY_NAME[operation], now)}


def test_nothing_is_wrong_with_what_was_done_or_is_as_before() -> None:
    assert _kinds("shelve image-backed", OFFLOADED) == set()
    assert _kinds("shelve image-backed", RUNNING) == set()
    assert _kinds("delete image-backed", GONE) == set()
    assert _kinds("unshelve", RUNNING, OFFLOADED) == set()


def _names(value: object) -> str | None:
    """Not their contents: sets have another order in each process."""
    return ", ".join(value) if isinstance(value, dict) else None


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"guests": {}}, LOST),
        ({"guests": {"host1": "RUNNING", "host2": "RUNNING"}}, LOST),
        ({"disks": {}}, LOST),
        ({"marks": 0}, LOST),
        ({"allocations": {}}, LOST),
        ({"ports_addresses": set()}, LOST),
        ({"devices": {"host1": []}}, LOST),
        ({"ports": {"port": ("host2", "ACTIVE")}}, LOST),
        ({"attachments": [("volume", "attached")], "volumes": {"volume": "in-use"}}, LOST),
        ({"owners": {"ours", "the service's"}}, LOST),
        ({"images": [("name-shelved", "queued")]}, LEAKED),
        ({"unnamed": ["snapshot"]}, LEAKED),
        ({"images": [("name-shelved", "active")], "snapshots": [None]}, LOST),
        ({"task": "shelving"}, STUCK),
    ],
    ids=_names,
)
def test_whatever_is_wrong_with_a_server_is_seen(changes: dict[str, Any], kind: str) -> None:
    assert kind in _kinds("shelve image-backed", replace(RUNNING, **changes))


@pytest.mark.parametrize("changes", [{"guests": {"host1": "RUNNING"}}, {"disks": {"host1": ["disks"]}}], ids=_names)
def test_what_is_left_of_a_server_without_a_host_is_seen(changes: dict[str, Any]) -> None:
    assert LEAKED in _kinds("delete image-backed", replace(GONE, **changes))
    assert LEAKED in _kinds("shelve image-backed", replace(OFFLOADED, **changes))


def test_a_users_volume_must_be_free_when_the_server_does_not_have_it() -> None:
    before = replace(RUNNING, volumes={"volume": "available"})
    subject = Subject(name="name", uuid="uuid", volume_id="volume", before=before)
    now = replace(before, volumes={"volume": "reserved"})
    found = complaints(SITE, subject, BY_NAME["attach volume"], now)
    assert STUCK in {each.kind for each in found}


def test_a_refusal_is_true() -> None:
    assert LOST in _kinds("shelve image-backed", OFFLOADED, answer=Answer(409, "no"))
    assert _kinds("shelve image-backed", RUNNING, answer=Answer(409, "no")) == set()


def test_the_judge_says_how_an_operation_ended() -> None:
    rebuild = BY_NAME["rebuild"]
    assert end_of(rebuild, replace(RUNNING, marks=0), RUNNING) == FORWARD
    assert end_of(rebuild, RUNNING, RUNNING) == ROLLED_BACK
    assert end_of(rebuild, replace(RUNNING, status="ERROR", guests={}), RUNNING) == ROLLED_BACK
    assert end_of(rebuild, replace(RUNNING, status="SHUTOFF"), RUNNING) == NEITHER
    # Nova has no servers in ERROR because they could not be shelved.
    assert end_of(BY_NAME["shelve image-backed"], replace(RUNNING, status="ERROR"), RUNNING) == NEITHER
    # An image too many is a leak, and nothing else.
    assert end_of(rebuild, replace(RUNNING, images=[("image", "queued")]), RUNNING) == ROLLED_BACK


def test_no_batch_has_a_point_twice_and_neighbours_are_apart() -> None:
    points = [f"point{number}" for number in range(2 * BATCH + 3)]
    cases = [Case(BY_NAME[operation], "crash", point) for operation in ("plug", "rebuild") for point in points]
    batches = batches_of(cases)
    for batch in batches:
        assert len({case.point for case in batch}) == len(batch) <= BATCH
        assert not any(cases.index(second) - cases.index(first) == 1 for first in batch for second in batch)
    assert sum(len(batch) for batch in batches) == len(cases)

"""The pivot: one transaction, and whoever is in doubt about it looks again."""

from __future__ import annotations

from typing import Any

import pytest

from causeway import errors
from causeway.model.operations import Operation
from causeway.store.api import journal, recording
from tests.functional.servers.moves_cloud import Cloud

CLOUD = {"overrides": {"moves": {"lease": 1.0}}}


def test_a_pivot_whose_answer_is_lost_has_happened(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    record, lost = recording.record, list[Any]()

    def losing(database: Any, move: Operation, **fields: Any) -> None:
        record(database, move, **fields)
        if move.pivoted and not lost:
            lost.append(move.id)
            raise errors.DatabaseFailed("The connection broke after the commit.")

    monkeypatch.setattr(recording, "record", losing)
    moved = cloud.resized(server)
    cloud.settle()
    assert lost
    assert moved.compute_host.startswith("cell2")
    assert cloud.hosts_of(server)[moved.compute_host] == "guest"
    assert cloud.confirmed(server).status == "ACTIVE"
    assert cloud.cleanups(server, "cell1") == []


def test_a_move_that_is_cancelled_before_it_begins_never_began(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    server = cloud.boot()
    before = cloud.show(server)
    insert = journal.insert_in

    def cancelled(connection: Any, move: Operation, **more: Any) -> None:
        move.cancel_requested = True
        insert(connection, move, **more)

    monkeypatch.setattr(journal, "insert_in", cancelled)
    cloud.member.compute.resize_server(server.id, "gen2.small")
    cloud.settle()
    after = cloud.wait(server, "ACTIVE")
    assert (after.status, after.compute_host) == ("ACTIVE", before.compute_host)
    assert cloud.migration(server).status == "cancelled"
    assert cloud.faults(server) == []

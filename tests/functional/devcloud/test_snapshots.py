"""Snapshots that Compute makes: block storage waits for its word, also across a restart of its own."""

from pathlib import Path
from typing import Any

from sqlalchemy import update

from causeway.devcloud.tables.volume import Snapshot
from tests.functional.servers.patience import until


def _snapshot(devcloud: Any, volume_id: str) -> str:
    body = {"snapshot": {"volume_id": volume_id, "force": True}}
    return str(devcloud.ok("POST", "/volume/v3/snapshots", body)["snapshot"]["id"])


def _status(devcloud: Any, snapshot_id: str) -> str:
    return str(devcloud.ok("GET", f"/volume/v3/snapshots/{snapshot_id}")["snapshot"]["status"])


def test_a_restart_ends_what_devcloud_did_itself_and_nothing_that_compute_does(
    start_devcloud: Any, tmp_path: Path
) -> None:
    first = start_devcloud(tmp_path)
    volume = first.ok("POST", "/volume/v3/volumes", {"volume": {"size": 1}})["volume"]["id"]
    path = f"/volume/v3/volumes/{volume}"
    until(lambda: first.ok("GET", path)["volume"]["status"], lambda status: status == "available", "a volume")
    own, awaited = (_snapshot(first, volume) for _ in range(2))
    made = {"available"}
    until(lambda: {_status(first, own), _status(first, awaited)}, lambda states: states == made, "the snapshots")
    body = {"os-reset_status": {"status": "creating"}}
    first.ok("POST", f"/volume/v3/snapshots/{awaited}/action", body)
    with first.cloud.store.transaction() as session:
        # As it is when the process dies while it copies.
        session.execute(update(Snapshot).where(Snapshot.id == own).values(status="creating"))
    first.stop()

    second = start_devcloud(tmp_path)
    assert (_status(second, own), _status(second, awaited)) == ("error", "creating")
    body = {"os-update_snapshot_status": {"status": "creating", "progress": "90%"}}
    second.ok("POST", f"/volume/v3/snapshots/{awaited}/action", body)
    shown = second.ok("GET", f"/volume/v3/snapshots/{awaited}")
    assert shown["snapshot"]["os-extended-snapshot-attributes:progress"] == "90%"

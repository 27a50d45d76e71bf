"""How far transfers have come, in whatever database: SQLite in the unit tests, servers in the integration tests."""

from __future__ import annotations

import uuid as uuids

from causeway.conductor.cells.transfers import Transfers
from causeway.model.drains import Drain, DrainRequest, DrainServer, DrainServerState, DrainState, Limits, Scope
from causeway.model.migration import Migration
from causeway.model.operations import Operation
from causeway.model.outcomes import OperationToken
from causeway.model.sagas import SagaState, StepPhase, StepRecord, StepState
from causeway.model.states import MigrationStatus
from causeway.store.api import drains, journal, migrations, operations, ordered_operations, recording, shown_operations
from causeway.store.api.ordered_operations import Report
from causeway.store.database import Database, utcnow

LEASE = 60.0
STEP = "MigrateGuest"
COUNTERS = {f"{what}_{of}_bytes": 0 for what in ("memory", "disk") for of in ("total", "processed", "remaining")}


def sending_move(database: Database, drain_id: str | None = None) -> tuple[Operation, OperationToken]:
    """A live migration whose guest goes; of a drain, if it is asked for by one."""
    uuid, server, request = (str(uuids.uuid4()) for _ in range(3))
    move = Operation(
        id=uuid,
        migration_uuid=str(uuids.uuid4()),
        instance_uuid=server,
        recipe="live_migration",
        state=SagaState.RUNNING,
        request_id=request,
    )
    migration = Migration(
        uuid=move.migration_uuid,
        instance_uuid=server,
        migration_type="live-migration",
        status=MigrationStatus.RUNNING,
        old_flavor_id=1,
        new_flavor_id=1,
    )
    with database.write() as connection:
        journal.insert_in(connection, move)
        migrations.insert_in(connection, migration)
        if drain_id is not None:
            asked = DrainServer(
                drain_id=drain_id, instance_uuid=server, state=DrainServerState.ASKED, request_id=request
            )
            connection.execute(drains.SERVERS.insert(), drains.SERVER.to_row(asked))
    recording.record(database, move, started=StepRecord(STEP, StepPhase.DO, 1, started_at=utcnow()), lease=LEASE)
    return move, OperationToken(move.id, move.migration_uuid, move.epoch, STEP)


def what_is_reported_is_shown_and_summed_while_its_step_runs(database: Database) -> None:
    move, token = sending_move(database)
    counters = COUNTERS | {"memory_total_bytes": 100, "memory_processed_bytes": 25}
    assert Transfers(database).report(token, 25, 100, counters) == move.instance_uuid
    late = Report(token, "1.1.0", 60, 100, counters | {"memory_processed_bytes": 60})
    ordered_operations.write(database, [late])
    (step,) = operations.get(database, move.id).steps
    shown = shown_operations.progress(database, [move.migration_uuid], utcnow())[move.migration_uuid]
    assert (step.bytes_done, step.bytes_total, shown.percent, shown.step) == (60, 100, 60, STEP)
    assert migrations.get(database, move.migration_uuid).memory_processed_bytes == 60
    asked = {move.instance_uuid: move.request_id or ""}
    assert drains.bytes_sent(database, asked) == {move.instance_uuid: 60}

    ended = StepRecord(STEP, StepPhase.DO, 1, StepState.DONE, bytes_done=110, bytes_total=110, ended_at=utcnow())
    recording.record(database, move, ended=ended, lease=LEASE)
    late.done, late.counters = 70, counters | {"memory_processed_bytes": 70}
    ordered_operations.write(database, [late])
    (step,) = operations.get(database, move.id).steps
    assert (step.bytes_done, step.bytes_total) == (110, 110)
    assert migrations.get(database, move.migration_uuid).memory_processed_bytes == 60
    assert drains.bytes_sent(database, asked) == {move.instance_uuid: 110}


def moves_that_send_share_what_their_drain_may(database: Database) -> None:
    request = DrainRequest("empty cell1", Scope(cells=["cell1"]), limits=Limits(bytes_per_second=600))
    drain = Drain(id=str(uuids.uuid4()), request=request, state=DrainState.RUNNING)
    drains.create(database, drain, [])
    transfers = Transfers(database)
    tokens = [sending_move(database, drain.id)[1] for _ in range(3)]
    free = sending_move(database)[1]
    assert transfers.rate_of(tokens[0]) == 600 and transfers.rate_of(free) is None
    ordered_operations.write(database, [Report(token, "1.1.0", 1, 10) for token in (*tokens, free)])
    assert {transfers.rate_of(token) for token in tokens} == {200.0}
    ordered_operations.write(database, [Report(tokens[0], "1.2.0", 1, 10)])
    assert {transfers.rate_of(token) for token in tokens[1:]} == {300.0}
    # Who asks sends.
    assert transfers.rate_of(tokens[0]) == 200.0

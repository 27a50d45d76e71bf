"""The journal and the migrations: every operation has a conductor that works on it, and a server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from causeway.audit.snapshot import ServerStanding, Snapshot
from causeway.model.audit import Disagreement, Severity
from causeway.model.operation_kinds import recipes_where
from causeway.model.operations import CREATE_VOLUME_IMAGE, DELETE, Operation
from causeway.model.sagas import ENDED, NOT_ACCEPTED, SagaState
from causeway.model.states import MIGRATION_ENDED, MigrationStatus, VmState

# Within this time another conductor acquires a lease that ran out.
TAKEOVER = timedelta(seconds=60)
_NOT_WAITED_FOR = recipes_where(lambda kind: not kind.is_waited_for)
_BESIDE_VOLUME_IMAGE = recipes_where(lambda kind: kind.may_begin_beside_volume_image)


def _active(snapshot: Snapshot) -> list[Operation]:
    return [operation for operation in snapshot.operations if operation.state not in ENDED]


def stuck(snapshot: Snapshot) -> Iterator[Disagreement]:
    for operation in _active(snapshot):
        if operation.state is SagaState.STUCK:
            reason = (operation.error or {}).get("message", "")
            yield Disagreement(
                "operation.stuck",
                Severity.ERROR,
                f"operation {operation.id}",
                operation.instance_uuid,
                f"The {operation.recipe} of the server is stuck: {reason}",
                left="It continues by itself when the cause is gone; `causeway operation show` shows which step it is.",
            )


def without_server(snapshot: Snapshot) -> Iterator[Disagreement]:
    for operation in _active(snapshot):
        # The server is gone before its delete ends. A delete without a lease is not being worked on.
        if operation.recipe == DELETE and operation.lease_until is not None:
            continue
        if operation.instance_uuid in snapshot.build_requests:
            # A server without a host has no record in any cell yet.
            continue
        gone = snapshot.standing(operation.instance_uuid) in (ServerStanding.DELETED, ServerStanding.UNKNOWN)
        if gone or (snapshot.home(operation.instance_uuid) is None and not snapshot.down_cells):
            yield Disagreement(
                "operation.without_server",
                Severity.ERROR,
                f"operation {operation.id}",
                operation.instance_uuid,
                f"The {operation.recipe} has not ended, but its server is not there.",
                left="Only the operation explains what it made: look at its steps with `causeway operation show`.",
            )


def without_owner(snapshot: Snapshot) -> Iterator[Disagreement]:
    for operation in _active(snapshot):
        if operation.lease_until is not None and snapshot.taken_at - operation.lease_until > TAKEOVER:
            yield Disagreement(
                "operation.without_owner",
                Severity.ERROR,
                f"operation {operation.id}",
                operation.instance_uuid,
                f"Nobody works on the {operation.recipe} of the server: its lease ran out at {operation.lease_until}.",
                left="A conductor takes it over as soon as one runs: does none run?",
            )


def more_than_one(snapshot: Snapshot) -> Iterator[Disagreement]:
    by_server: dict[str, list[str]] = {}
    with_images = {
        operation.instance_uuid for operation in _active(snapshot) if operation.recipe == CREATE_VOLUME_IMAGE
    }
    for operation in _active(snapshot):
        # A requested confirm or revert waits for the end of its resize, and a delete for the confirm of it.
        if operation.recipe in _NOT_WAITED_FOR:
            continue
        if operation.recipe in _BESIDE_VOLUME_IMAGE and operation.instance_uuid in with_images:
            continue
        if operation.state is not SagaState.REQUESTED and operation.state not in NOT_ACCEPTED:
            by_server.setdefault(operation.instance_uuid, []).append(operation.id)
    for server, found in by_server.items():
        if len(found) > 1:
            yield Disagreement(
                "operation.more_than_one",
                Severity.CRITICAL,
                "operations " + ", ".join(sorted(found)),
                server,
                f"{len(found)} operations work on the server at the same time.",
                left="Which of them is right must be found out first.",
            )


def migrations_without_operation(snapshot: Snapshot) -> Iterator[Disagreement]:
    working = {operation.migration_uuid for operation in _active(snapshot)}
    # The user decides about the first; the second is an evacuation, whose dead host is cleaned when it returns.
    waiting = (MigrationStatus.FINISHED, MigrationStatus.DONE)
    for uuid, migration in snapshot.migrations.items():
        if migration.status in MIGRATION_ENDED or migration.status in waiting or uuid in working:
            continue
        yield Disagreement(
            "migration.without_operation",
            Severity.ERROR,
            f"migration {uuid}",
            migration.instance_uuid,
            f"Migration {uuid} is {migration.status}, but no operation works on it.",
            left="Which way it should end is unknown without a journal.",
        )


def migrations_and_states(snapshot: Snapshot) -> Iterator[Disagreement]:
    """A migration waits for confirm or revert exactly while its server is resized."""
    finished: dict[str, list[str]] = {}
    for uuid, migration in snapshot.migrations.items():
        if migration.status is MigrationStatus.FINISHED:
            finished.setdefault(migration.instance_uuid, []).append(uuid)
    for server, found in finished.items():
        home = snapshot.home(server)
        mapping = snapshot.mappings.get(server)
        if mapping is not None and mapping.cell_uuid in snapshot.down_cells:
            continue
        if home is not None and not snapshot.is_quiet(home):
            continue
        if len(found) > 1 or home is None or home.vm_state is not VmState.RESIZED:
            is_now = "is not there" if home is None else f"is {home.vm_state}"
            yield Disagreement(
                "migration.not_resized",
                Severity.ERROR,
                "migration " + ", ".join(sorted(found)),
                server,
                f"Migration {', '.join(sorted(found))} waits for confirm or revert, but the server {is_now}."
                if len(found) == 1
                else f"{len(found)} migrations of the server wait for confirm or revert.",
                left="What the source keeps for a revert may be needed: look at the server first.",
            )
    for home in snapshot.homes:
        if home.vm_state is VmState.RESIZED and snapshot.is_quiet(home) and home.uuid not in finished:
            yield Disagreement(
                "state.resized",
                Severity.ERROR,
                "state resized",
                home.uuid,
                "The server waits for confirm or revert, but has no migration that could be confirmed or reverted.",
                left="If it runs as it should, reset its state to active.",
            )

"""Action os-migrateLive; forcing and aborting running live migrations.

Order of checks and codes: Compute API reference, "Live-Migrate Server", "Force Migration Complete Action", "Delete (Abort)
Migration". The recipes of live and near-live migrations (`causeway.moves.recipes`) carry out what is accepted.
"""

from __future__ import annotations

from causeway import errors
from causeway.api.answers.parts import EMPTY
from causeway.api.request import ApiRequest, Response, handler
from causeway.api.schemas.common import to_bool
from causeway.api.servers import loading
from causeway.api.servers.actions import schemas_verbs
from causeway.api.servers.loading import Home
from causeway.model import server_actions
from causeway.model.block_device import has_local_disks
from causeway.model.migration import LIVE_IN_PROGRESS, LIVE_MIGRATION, Migration
from causeway.model.states import MIGRATION_ENDED, MigrationStatus, TaskState, VmState
from causeway.moves import live_requests
from causeway.operations import requests
from causeway.policy import CROSS_CELL_LIVE
from causeway.store.api import cells as cell_records
from causeway.store.api import migrations as store
from causeway.store.api import shown_operations
from causeway.store.cell import actions, block_devices

_ACTION = server_actions.LIVE_MIGRATE
_MIGRATE_LIVE = "os_compute_api:os-migrate-server:migrate_live"
_SERVER_RULE = "os_compute_api:servers:migrations:"
# From this version on requests are not waited for. Before it, a client waits for at most so many seconds.
_ASYNCHRONOUS, _LONGEST_WAIT = (2, 34), 60.0


@handler(body=schemas_verbs.MIGRATE_LIVE, statuses=(202,), answer=EMPTY)
def migrate(request: ApiRequest, server_id: str) -> Response:
    wanted = request.body["os-migrateLive"]
    host = wanted["host"]
    rule = _MIGRATE_LIVE if host is None else f"{_MIGRATE_LIVE}:host"
    home = loading.load_in_cell(request, server_id, rule, _ACTION.name, after_snapshot=True)
    forced = _is_forced(request, wanted, host)
    live_requests.check_movable(home.instance)
    loading.check_action(request, home.instance, _ACTION)
    may_leave_cell = request.allows(CROSS_CELL_LIVE, loading.target_of(home.instance))
    leaves_cell = host is not None and _check_target(request, home, host, may_leave_cell=may_leave_cell)
    block = wanted["block_migration"]
    block_migration = None if block == "auto" else to_bool(block)
    if leaves_cell:
        _check_across_cells(home, forced=forced, block_migration=block_migration)
    is_synchronous = request.version < _ASYNCHRONOUS
    migration = live_requests.request_live_migration(
        request.services,
        request.context,
        home.instance,
        home.cell_uuid,
        host=host,
        leaves_cell=leaves_cell,
        may_leave_cell=may_leave_cell,
        forced=forced,
        block_migration=block_migration,
        disk_over_commit=to_bool(wanted["disk_over_commit"]) if "disk_over_commit" in wanted else None,
        event="conductor_migrate_server" if is_synchronous else "conductor_live_migrate_instance",
    )
    if is_synchronous:
        _wait_for_checks(request, migration)
    return Response(202)


def _is_forced(request: ApiRequest, wanted: dict[str, object], host: str | None) -> bool:
    """Whether the named host is used without the scheduler's filters. Raises BadRequest if no host is named to be forced."""
    if request.version < (2, 30):
        return host is not None
    forced = to_bool(wanted.get("force", False))
    if forced and host is None:
        raise errors.BadRequest("Can't force to a non-provided destination")
    return forced


def _check_target(request: ApiRequest, home: Home, host: str, *, may_leave_cell: bool) -> bool:
    """Whether the host is in another cell. Raises BadRequest; hosts of cells that the caller may not use seem not to exist."""
    missing = errors.BadRequest(f"Compute host {host} could not be found.")
    try:
        cell_uuid = cell_records.cell_of_host(request.services.api, host)
    except errors.HostNotFound:
        raise missing from None
    if cell_uuid != home.cell_uuid and not may_leave_cell:
        raise missing
    if host == home.instance.host:
        raise errors.BadRequest(f"Unable to migrate instance ({home.instance.uuid}) to current host ({host}).")
    return cell_uuid != home.cell_uuid


def _check_across_cells(home: Home, *, forced: bool, block_migration: bool | None) -> None:
    """Raises BadRequest if the options can't be used for a migration to another cell."""
    if forced:
        raise errors.BadRequest("A live migration to a host of another cell can't be forced.")
    if block_migration is False and has_local_disks(block_devices.of_instance(home.database, home.instance.uuid)):
        raise errors.BadRequest(
            f"Server {home.instance.uuid} has local disks, which hosts of different cells do not share: they must be copied along"
            " (block_migration auto or true)."
        )


def _wait_for_checks(request: ApiRequest, migration: Migration) -> None:
    """Raises what the checks of the hosts find, as clients before 2.34 expect; returns if they take too long."""
    api = request.services.api

    def failure() -> errors.CausewayError | None:
        return shown_operations.failures(api, [migration.uuid]).get(migration.uuid)

    def is_known() -> bool:
        status = store.get(api, migration.uuid).status
        # The cause of a failure is written down last.
        return status is not MigrationStatus.ACCEPTED and (status is not MigrationStatus.ERROR or failure() is not None)

    if not is_known():
        request.services.long_polls.wait(is_known, _LONGEST_WAIT)
    if store.get(api, migration.uuid).status is not MigrationStatus.ERROR:
        return
    cause = failure()
    if cause is not None and not isinstance(cause, errors.UnexpectedFailure):
        raise errors.BadRequest(cause.message)
    raise errors.CausewayError("The live migration failed." if cause is None else cause.message)


@handler(body=schemas_verbs.FORCE_COMPLETE, statuses=(202,), answer=EMPTY)
def force_complete(request: ApiRequest, server_id: str, migration_id: str) -> Response:
    home = loading.load_in_cell(request, server_id, _SERVER_RULE + "force_complete", "force_complete")
    loading.check_unlocked(request, home.instance)
    loading.check_state(home.instance, "force_complete", vm=(VmState.ACTIVE,), task=(TaskState.MIGRATING,))
    migration = of_server(request, server_id, migration_id)
    if migration is None:
        raise errors.BadRequest(f"Migration {migration_id} for server {server_id} could not be found.")
    if migration.status is not MigrationStatus.RUNNING:
        raise _wrong_status(migration, "force complete")
    _record(request, home, "live_migration_force_complete")
    request.services.conductor.live_migration_force_complete(
        request.context, instance_uuid=server_id, migration_uuid=migration.uuid
    )
    return Response(202)


def abort(request: ApiRequest, server_id: str, migration: Migration) -> None:
    """Aborts a live migration of the server. Raises BadRequest if it has ended or can't be aborted any more."""
    home = loading.load_in_cell(request, server_id, _SERVER_RULE + "delete", "abort live migration")
    loading.check_unlocked(request, home.instance)
    loading.check_state(home.instance, "abort live migration", task=(TaskState.MIGRATING,))
    allowed = LIVE_IN_PROGRESS if request.version >= (2, 65) else (MigrationStatus.RUNNING,)
    if migration.status not in allowed or not requests.cancel(request.services, server_id, migration.uuid):
        raise _wrong_status(migration, "abort live migration")
    _record(request, home, "live_migration_cancel")
    request.services.conductor.live_migration_abort(
        request.context, instance_uuid=server_id, migration_uuid=migration.uuid
    )


def of_server(request: ApiRequest, server_id: str, migration_id: str) -> Migration | None:
    """A migration of the server by its number or its uuid; None if there is none."""
    found = store.search(request.services.api, instance_uuid=server_id)
    return next((each for each in found if migration_id in (str(each.id), each.uuid)), None)


def is_hidden(migration: Migration) -> bool:
    """Whether lists of a server's migrations leave it out: a live migration that has not begun."""
    return (
        migration.migration_type == LIVE_MIGRATION
        and migration.status not in LIVE_IN_PROGRESS
        and migration.status not in MIGRATION_ENDED
    )


def _wrong_status(migration: Migration, what: str) -> errors.BadRequest:
    return errors.BadRequest(
        f"Migration {migration.id} state of instance {migration.instance_uuid} is {migration.status}. Cannot {what} while the"
        " migration is in this state."
    )


def _record(request: ApiRequest, home: Home, name: str) -> None:
    loading.change(
        request, home, lambda connection: actions.start_in(connection, loading.new_action(request, home.instance, name))
    )

"""``causeway manage``: databases and cells of a cloud of many processes. It works on the databases themselves.

The first time, each file with one URL in it::

    causeway manage db sync --cell0-file /etc/causeway/cell0.url
    causeway manage cell create --name cell1 --transport-url-file queue.url --database-connection-file database.url

URLs with passwords are read from files or from standard input: every user of the machine sees the arguments of commands.

After an upgrade of the package: ``causeway manage db sync``. API, conductors and schedulers see a new or changed cell within
``[api_database] cells_refresh_interval`` seconds.
"""

from __future__ import annotations

import json
import uuid as uuids
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import click
import oslo_messaging
import sqlalchemy as sa
from oslo_config import cfg
from rich.markup import escape

from causeway import errors
from causeway.cli import (
    archive,
    consistency,
    databases,
    machine_types,
    processes,
    queue_rights,
    status,
    tables,
    volume_attachment,
)
from causeway.cli.nova_names import NovaNames
from causeway.cli.secret_urls import url_option
from causeway.clients.placement import PlacementClient, remote_placement
from causeway.hosts.cell_removal import Removal
from causeway.model.host import CELL0_UUID, CellMapping, ComputeNode
from causeway.rpc.transport import Transports
from causeway.store import schema
from causeway.store.api import cells as records
from causeway.store.cell import hosts as host_records
from causeway.store.database import Database

NO_QUEUE = "none:///"

transport_option = url_option("--transport-url", "The cell's message queue: rabbit://user:password@host:5672/cell1.")
connection_option = url_option("--database-connection", "The cell's database: postgresql://user:password@host/cell1.")


@click.group(cls=NovaNames)
def manage() -> None:
    """Databases and cells of a cloud of many processes."""


manage.add_command(status.status)


@manage.group(cls=NovaNames)
def db() -> None:
    """Schemas of the databases, and what is left of deleted servers."""


db.add_command(archive.archive_deleted_rows)
db.add_command(archive.purge)


@manage.group(cls=NovaNames)
def cell() -> None:
    """Cells: their queues and databases."""


cell.add_command(consistency.verify_instance)
cell.add_command(consistency.map_instances)
manage.add_command(consistency.placement)
manage.add_command(volume_attachment.volume_attachment)
manage.add_command(machine_types.libvirt)
manage.add_command(queue_rights.queue)


@contextmanager
def _api(config_files: tuple[Path, ...]) -> Iterator[Database]:
    with processes.failures_reported():
        api = databases.api_database(processes.configuration(config_files))
        try:
            yield api
        finally:
            api.close()


@db.command()
@processes.config_file_option
@url_option("--cell0", "URL of the database of cell0, where servers are that found no host. Needed the first time.")
def sync(config_files: tuple[Path, ...], cell0: str | None) -> None:
    """Make or upgrade the schemas of the API database and of all cells.

    Exit status 1 if a cell's database could not be upgraded; the others are upgraded.
    """
    with _api(config_files) as api:
        schema.sync(api, "api")
        click.echo("API database: up to date")
        if cell0 is not None:
            _sync_cell("cell0", cell0)
            known = {found.uuid: found for found in records.list_cells(api)}
            made = known.get(CELL0_UUID) or CellMapping(CELL0_UUID, "cell0", NO_QUEUE, cell0)
            records.save_cell(api, replace(made, database_connection=cell0))
        cells = records.list_cells(api)
    failed = []
    for found in cells:
        try:
            _sync_cell(found.name, found.database_connection)
        except (sa.exc.SQLAlchemyError, errors.DatabaseFailed, errors.Misconfigured) as failure:
            failed.append(found.name)
            click.echo(f"{found.name}: FAILED: {failure}", err=True)
        else:
            click.echo(f"{found.name}: up to date")
    if not any(found.is_cell0 for found in cells):
        raise click.ClickException("There is no cell0 yet: repeat this with --cell0-file FILE, in which its URL is.")
    if failed:
        raise click.ClickException(f"Not upgraded: {', '.join(failed)}.")


@cell.command()
@processes.config_file_option
@click.option("--name", required=True)
@transport_option
@connection_option
@click.option("--uuid", help="The cell's uuid, if it is to have that of a cell of Nova's. Else it gets a new one.")
@click.option("--disabled", is_flag=True, help="The scheduler chooses no host of it until it is enabled.")
def create(
    config_files: tuple[Path, ...],
    name: str,
    uuid: str | None,
    transport_url: str | None,
    database_connection: str | None,
    disabled: bool,
) -> None:
    """Add a cell; its database gets the schema. Prints the cell's uuid."""
    if not transport_url or not database_connection:
        raise click.UsageError("--transport-url-file and --database-connection-file are needed.")
    with _api(config_files) as api:
        _check_name(api, name)
        if uuid is not None:
            uuid = _checked_uuid(api, uuid)
        _check_transport(config_files, transport_url)
        _sync_cell(name, database_connection)
        made = CellMapping(uuid or str(uuids.uuid4()), name, transport_url, database_connection, disabled=disabled)
        records.save_cell(api, made)
    click.echo(made.uuid)


@cell.command("list")
@processes.config_file_option
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
def list_cells(config_files: tuple[Path, ...], as_json: bool) -> None:
    """List cells; passwords are left out."""
    with _api(config_files) as api:
        cells, hosts = records.list_cells(api), list(records.hosts(api).values())
    rows = [
        {
            "name": found.name,
            "uuid": found.uuid,
            "disabled": found.disabled,
            "hosts": hosts.count(found.uuid),
            "transport_url": _without_password(found.transport_url),
            "database_connection": sa.make_url(found.database_connection).render_as_string(hide_password=True),
        }
        for found in cells
    ]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    titles = ("Name", "UUID", "Disabled", "Hosts", "Transport URL", "Database")
    tables.show(tables.console(), titles, [[escape(str(value)) for value in row.values()] for row in rows])


@cell.command()
@processes.config_file_option
@click.argument("name")
@click.option("--new-name")
@transport_option
@connection_option
@click.option("--enable/--disable", "enabled", default=None, help="Whether the scheduler may choose its hosts.")
def update(
    config_files: tuple[Path, ...],
    name: str,
    new_name: str | None,
    transport_url: str | None,
    database_connection: str | None,
    enabled: bool | None,
) -> None:
    """Change a cell, by NAME or uuid: its name, its URLs, whether it takes servers."""
    with _api(config_files) as api:
        found = _find(api, name)
        if found.is_cell0 and (enabled is not None or transport_url or new_name):
            raise click.ClickException("cell0 has neither hosts nor a queue: only its database can be changed.")
        if new_name is not None:
            _check_name(api, new_name)
            found.name = new_name
        if transport_url is not None:
            _check_transport(config_files, transport_url)
            found.transport_url = transport_url
        if database_connection is not None:
            _sync_cell(found.name, database_connection)
            found.database_connection = database_connection
        if enabled is not None:
            found.disabled = not enabled
        records.save_cell(api, found)


@cell.command()
@processes.config_file_option
@click.argument("name")
def delete(config_files: tuple[Path, ...], name: str) -> None:
    """Delete a cell that was emptied, by NAME or uuid, and all records of its hosts. Its database stays.

    Refused, with the reason, while it has servers, or hosts that take new ones. What is left of deleted servers is archived.
    If it is interrupted, repeat it.
    """
    conf = processes.configuration(config_files)
    with _api(config_files) as api:
        found = _find(api, name)
        if found.is_cell0:
            raise click.ClickException("A cloud can't be without cell0.")
        database = Database(found.database_connection, found.name)
        try:
            removal = Removal(api, database, found, partial(_placement, conf), conf.service_down_time)
            removed = removal.remove()
        finally:
            database.close()
    click.echo(f"Cell {found.name} is deleted.")
    if removed.hosts:
        click.echo(f"Its hosts are deleted, too: {', '.join(removed.hosts)}. Stop the computes that still run there.")
    if removed.archived:
        click.echo(f"Rows of deleted servers that were archived: {removed.archived}.")


def _placement(conf: cfg.ConfigOpts) -> PlacementClient:
    processes.check_placement(conf)
    return remote_placement(conf)


@cell.command("discover-hosts")
@processes.config_file_option
@click.option("--cell", "name", help="Only this cell, by name or uuid.")
def discover_hosts(config_files: tuple[Path, ...], name: str | None) -> None:
    """Map the hosts that have reported to a cell and are not known to the API database yet.

    Conductors do this at a host's first report, and record its node. Exit status 1 if a cell does not answer or a host's name is
    taken.
    """
    failed = False
    with _api(config_files) as api:
        cells = [_find(api, name)] if name is not None else records.list_cells(api)
        known = records.hosts(api)
        for found in cells:
            if found.is_cell0:
                continue
            try:
                new = sorted({node.host for node in _nodes(found)} - {h for h, c in known.items() if c == found.uuid})
                for host in new:
                    records.map_host(api, host, found.uuid)
                    click.echo(f"{found.name}: {host}")
            except (errors.DatabaseFailed, errors.Conflict) as failure:
                failed = True
                click.echo(f"{found.name}: FAILED: {failure.message}", err=True)
    if failed:
        raise SystemExit(1)


def _nodes(found: CellMapping) -> list[ComputeNode]:
    database = Database(found.database_connection, found.name)
    try:
        return host_records.list_nodes(database)
    finally:
        database.close()


def _find(api: Database, name: str) -> CellMapping:
    for found in records.list_cells(api):
        if name in (found.name, found.uuid):
            return found
    raise click.ClickException(f"There is no cell {name}. See `causeway manage cell list`.")


def _check_name(api: Database, name: str) -> None:
    if not name or any(name in (found.name, found.uuid) for found in records.list_cells(api)):
        raise click.ClickException(f"There is a cell {name!r} already, or the name is empty.")


def _checked_uuid(api: Database, uuid: str) -> str:
    try:
        plain = str(uuids.UUID(uuid))
    except ValueError as failure:
        raise click.ClickException(f"{uuid} is no uuid.") from failure
    if any(plain in (found.uuid, found.name) for found in records.list_cells(api)):
        raise click.ClickException(f"There is a cell {plain} already.")
    return plain


def _check_transport(config_files: tuple[Path, ...], url: str) -> None:
    transports = Transports(processes.configuration(config_files))
    try:
        # Connects to nothing yet.
        transports.get(url)
    except (oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure) as failure:
        raise click.ClickException(f"The transport URL can't be used: {failure}") from failure
    finally:
        transports.cleanup()


def _sync_cell(name: str, url: str) -> None:
    # A change of a large table takes its time.
    database = Database(url, name, answer_timeout=None)
    try:
        schema.sync(database, "cell")
    finally:
        database.close()


def _without_password(url: str) -> str:
    """A transport URL, which may name several hosts, without passwords."""
    parts = urlsplit(url)
    places = []
    for place in parts.netloc.split(","):
        account, at, host = place.rpartition("@")
        user, colon, _password = account.partition(":")
        places.append(f"{user}{':***' if colon else ''}{at}{host}")
    return parts._replace(netloc=",".join(places)).geturl()

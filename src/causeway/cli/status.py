"""``causeway manage status``: whether the cloud is ready to run, and to be upgraded (Nova's nova-status).

Exit status: 0 all fine, 1 warnings, 2 failures, 255 something unexpected. Every check runs in a thread of its own and has
``--timeout`` seconds; one that hangs is a failure, and does not delay others.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from pathlib import Path
from typing import Any

import click
from oslo_config import cfg
from oslo_policy import opts as policy_opts
from rich.markup import escape

from causeway import errors, policy_files
from causeway.cli import databases, processes, tables
from causeway.clients import reach
from causeway.conductor.upkeep.recovery import BINARY as CONDUCTOR
from causeway.conf import ignored
from causeway.model import versions
from causeway.model.certificates import CERTIFICATES_ENDING, CertificateEnd
from causeway.model.host import (
    FOLDERS_LACK,
    LIVE_MIGRATION_LACKS,
    OTHER_OWNER,
    REQUIRES_SIGNATURES,
    STORAGE,
    CellMapping,
    ComputeNode,
    HostMapping,
    Service,
)
from causeway.model.sagas import SagaState
from causeway.policy import CROSS_CELL_RESIZE, NOBODY, Enforcer, unknown_rules
from causeway.roles.surroundings import Surroundings
from causeway.rpc import signatures
from causeway.store import clock, schema
from causeway.store.api import cells as cell_records
from causeway.store.api import journal
from causeway.store.cell import hosts
from causeway.store.database import Database, utcnow
from causeway.store.own_nodes import OwnNodes

UNEXPECTED = 255


class Level(IntEnum):
    """The worst one is the exit status."""

    SUCCESS = 0
    WARNING = 1
    FAILURE = 2


@dataclass
class Finding:
    check: str
    level: Level
    details: str


Found = tuple[Level, str]
Check = Callable[[], Found]


@click.command()
@processes.config_file_option
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds that each check has.")
def status(config_files: tuple[Path, ...], as_json: bool, timeout: float) -> None:
    """Check databases, queues, hosts, services around and moves. Needs a conductor's configuration.

    Exit status: 0 all fine, 1 warnings, 2 failures, 255 something unexpected.
    """
    try:
        findings = run(config_files, timeout)
    except Exception as failure:  # noqa: BLE001 - the exit status says so, as Nova's does
        click.echo(f"Unexpected: {failure}", err=True)
        sys.exit(UNEXPECTED)
    worst = max((found.level for found in findings), default=Level.SUCCESS)
    if as_json:
        rows = [asdict(found) | {"level": found.level.name.lower()} for found in findings]
        click.echo(json.dumps({"status": worst.name.lower(), "checks": rows}, indent=2))
    else:
        show(findings)
    sys.stdout.flush()
    # Threads of checks that hang are not waited for.
    os._exit(worst) if any(thread.name.startswith("check-") for thread in threading.enumerate()) else sys.exit(worst)


def show(findings: list[Finding]) -> None:
    colors = {Level.SUCCESS: "green", Level.WARNING: "yellow", Level.FAILURE: "bold red"}
    rows = [
        [escape(found.check), f"[{colors[found.level]}]{found.level.name.lower()}[/]", escape(found.details)]
        for found in findings
    ]
    tables.show(tables.console(), ("Check", "Result", "Details"), rows, folded=("Details",), title="Causeway status")


def run(config_files: tuple[Path, ...], timeout: float) -> list[Finding]:
    """Runs all checks. Earlier ones find out what later ones need."""
    logging.getLogger("oslo.messaging").setLevel(logging.CRITICAL)
    conf = processes.configuration(config_files, with_tokens=True)
    findings: list[Finding] = []
    with ExitStack() as cleanup:
        try:
            api = databases.api_database(conf, is_known=True)
        except click.ClickException as failure:
            return [Finding("API database", Level.FAILURE, failure.message)]
        cleanup.callback(api.close)
        findings += together({"API database": lambda: _schema(api, "api")}, timeout)
        if findings[0].level is Level.FAILURE:
            return findings + together(_around(conf, cleanup), timeout)
        mappings = cell_records.list_cells(api)
        checks: dict[str, Check] = {"cells": lambda: _cells(mappings)}
        known = cell_records.host_mappings(api)
        for cell in mappings:
            checks |= _of_cell(conf, cell, known, cleanup)
        checks["shared storage"] = lambda: _storage(_nodes(mappings))
        checks["conductors"] = lambda: _conductors(conf, _super_conductors(mappings))
        checks["moves"] = lambda: _moves(conf, api)
        checks["signed messages"] = lambda: _signed(conf, {each.host for each in known})
        checks["options"] = lambda: _options(conf)
        checks["policy files"] = lambda: _policy_files(conf)
        checks["moves between cells"] = lambda: _policy(conf)
        findings += together(checks | _around(conf, cleanup), timeout)
    return findings


def together(checks: dict[str, Check], timeout: float) -> list[Finding]:
    """Runs checks in parallel, for at most ``timeout`` seconds."""
    results: dict[str, Found] = {}

    def work(name: str, check: Check) -> None:
        try:
            results[name] = check()
        except errors.CausewayError as failure:
            results[name] = Level.FAILURE, f"{failure.message} {failure.details}".strip()
        except Exception as failure:  # noqa: BLE001 - libraries raise what they like; it is what the check found
            results[name] = Level.FAILURE, f"{type(failure).__name__}: {failure}"

    threads = {
        name: threading.Thread(target=work, args=(name, check), name=f"check-{name}", daemon=True)
        for name, check in checks.items()
    }
    for thread in threads.values():
        thread.start()
    end = utcnow() + timedelta(seconds=timeout)
    for thread in threads.values():
        thread.join(max(0.0, (end - utcnow()).total_seconds()))
    silent = (Level.FAILURE, f"no answer within {timeout:g} s")
    return [Finding(name, *results.get(name, silent)) for name in checks]


def _schema(database: Database, kind: schema.Kind) -> Found:
    """Raises DatabaseFailed and Misconfigured."""
    database.ping()
    state = schema.state(database, kind)
    if state.current is None:
        return Level.FAILURE, "has no schema: run `causeway manage db sync`"
    if state.is_newer:
        return (
            Level.WARNING,
            f"schema {state.current} is newer than this package's, {state.newest}: upgrade the package",
        )
    if state.current not in state.known:
        return Level.FAILURE, f"schema {state.current} is of a release before 0.1.0, which can't be upgraded"
    if state.current != state.newest:
        return Level.FAILURE, f"schema {state.current} is older than {state.newest}: run `causeway manage db sync`"
    return Level.SUCCESS, f"schema {state.current}"


def _cells(mappings: list[CellMapping]) -> Found:
    if not any(cell.is_cell0 for cell in mappings):
        return Level.FAILURE, "there is no cell0: run `causeway manage db sync --cell0 URL`"
    names = [f"{cell.name}{' (disabled)' if cell.disabled else ''}" for cell in mappings if not cell.is_cell0]
    if not names:
        return Level.WARNING, "there is no cell for servers: run `causeway manage cell create`"
    return Level.SUCCESS, ", ".join(names)


def _of_cell(conf: cfg.ConfigOpts, cell: CellMapping, known: list[HostMapping], cleanup: ExitStack) -> dict[str, Check]:
    database = Database(cell.database_connection, cell.name)
    cleanup.callback(database.close)
    checks: dict[str, Check] = {f"{cell.name}: database": lambda: _schema(database, "cell")}
    if not cell.is_cell0:
        checks[f"{cell.name}: queue"] = lambda: _queue(conf, cell.transport_url)
        checks[f"{cell.name}: conductors"] = lambda: _cell_conductors(conf, hosts.list_services(database))
        checks[f"{cell.name}: computes"] = lambda: _computes(conf, hosts.list_services(database))
        checks[f"{cell.name}: live migration"] = lambda: _live_migration(hosts.list_nodes(database))
        checks[f"{cell.name}: folders of disks"] = lambda: _folders(hosts.list_nodes(database))
        checks[f"{cell.name}: owners of hosts"] = lambda: _owners(hosts.list_nodes(database))
        checks[f"{cell.name}: certificates"] = lambda: _certificates(hosts.list_nodes(database))
        checks[f"{cell.name}: signed orders"] = lambda: _signed_orders(cell, hosts.list_nodes(database))
        checks[f"{cell.name}: host mappings"] = lambda: _mapped(cell, hosts.list_nodes(database), known)
    return checks


def _queue(conf: cfg.ConfigOpts, url: str | None) -> Found:
    from causeway.rpc.transport import Transports

    if not url:
        return Level.FAILURE, "[DEFAULT] transport_url is not set"
    transports = Transports(conf)
    try:
        transports.get(url).reach()
    finally:
        transports.cleanup()
    return Level.SUCCESS, "answers"


def _computes(conf: cfg.ConfigOpts, services: list[Service]) -> Found:
    now = utcnow()
    computes = [service for service in services if service.binary == "nova-compute"]
    down = [one.host for one in computes if not hosts.is_up(one, now, conf.service_down_time)]
    counts = Counter(service.version for service in computes)
    parts = ", ".join(f"{count} of version {version}" for version, count in sorted(counts.items())) or "none"
    if not computes:
        return Level.WARNING, "no compute has reported yet"
    if down:
        level = Level.FAILURE if len(down) == len(computes) else Level.WARNING
        return level, f"{parts}; {len(down)} down: {_some(down)}"
    if min(counts) < versions.SERVICE:
        return (
            Level.WARNING,
            f"{parts}: older than this package's {versions.SERVICE} (RPC {versions.RPC}); upgrade them",
        )
    return Level.SUCCESS, f"{parts} (RPC {versions.RPC}), all up"


def _super_conductors(mappings: list[CellMapping]) -> list[Service]:
    """The records of super conductors, which are in cell0."""
    for cell in mappings:
        if cell.is_cell0:
            database = Database(cell.database_connection, cell.name)
            try:
                return hosts.list_services(database)
            finally:
                database.close()
    return []


def _nodes(mappings: list[CellMapping]) -> list[ComputeNode]:
    """The hosts of all cells: storage is shared across them."""
    found = []
    for cell in mappings:
        if not cell.is_cell0:
            database = Database(cell.database_connection, cell.name)
            try:
                found += hosts.list_nodes(database)
            finally:
                database.close()
    return found


def _conductors(conf: cfg.ConfigOpts, services: list[Service]) -> Found:
    now = utcnow()
    conductors = [service for service in services if service.binary == CONDUCTOR]
    down = [one.host for one in conductors if not hosts.is_up(one, now, conf.service_down_time)]
    up = len(conductors) - len(down)
    if not up:
        return Level.FAILURE, f"none is up{': ' + _some(down) if down else ''}"
    if down:
        return Level.WARNING, f"{up} up, {len(down)} down: {_some(down)}"
    return Level.SUCCESS, f"{up} up"


def _cell_conductors(conf: cfg.ConfigOpts, services: list[Service]) -> Found:
    if not any(service.binary == CONDUCTOR for service in services):
        return Level.SUCCESS, "none of its own: super conductors take its reports"
    return _conductors(conf, services)


def _mapped(cell: CellMapping, nodes: list[ComputeNode], known: list[HostMapping]) -> Found:
    own = OwnNodes(known)
    if foreign := sorted({node.host for node in nodes if not own.has(cell.uuid, node)}):
        return (
            Level.FAILURE,
            f"get no servers, because they report the node or the name of another host: {_some(foreign)}; see `causeway audit`",
        )
    mapped, reported = {each.host for each in known if each.cell_uuid == cell.uuid}, {node.host for node in nodes}
    missing, gone = sorted(reported - mapped), sorted(mapped - reported)
    if missing:
        return Level.FAILURE, f"not mapped: {_some(missing)}; run `causeway manage cell discover-hosts`"
    if gone:
        return Level.WARNING, f"mapped, but have no compute node there: {_some(gone)}"
    return Level.SUCCESS, f"{len(mapped)} hosts"


def _live_migration(nodes: list[ComputeNode]) -> Found:
    """What hosts reported last: they check it when they start, and every ten minutes."""
    able = [node for node in nodes if node.capabilities.get("supports_live_migration")]
    said = {node.host: node.capabilities.get(LIVE_MIGRATION_LACKS) for node in able}
    lacking = {host: lacks for host, lacks in sorted(said.items()) if lacks}
    if lacking:
        return Level.WARNING, "\n".join(f"{host}: {'; '.join(lacks)}" for host, lacks in lacking.items())
    unknown = sorted(host for host, lacks in said.items() if lacks is None)
    parts = [f"{len(said) - len(unknown)} hosts have what it needs"]
    if unknown:
        parts.append(f"{len(unknown)} have not said yet: {_some(unknown)}")
    if len(able) < len(nodes):
        parts.append(f"{len(nodes) - len(able)} can't")
    return Level.SUCCESS, "; ".join(parts)


def _folders(nodes: list[ComputeNode]) -> Found:
    """What hosts reported last of their own folders."""
    lacking = {node.host: lack for node in nodes if (lack := node.capabilities.get(FOLDERS_LACK)) is not None}
    if lacking:
        lines = [f"{host}: {lack}. No server is built there or moved there." for host, lack in sorted(lacking.items())]
        return Level.FAILURE, "\n".join(lines)
    return Level.SUCCESS, f"{len(nodes)} hosts can write theirs"


def _owners(nodes: list[ComputeNode]) -> Found:
    """Which hosts reported last that another compute service may own their guests."""
    doubtful = {node.host: owner for node in nodes if (owner := node.capabilities.get(OTHER_OWNER)) is not None}
    if doubtful:
        return Level.FAILURE, "\n".join(f"{host}: {owner}" for host, owner in sorted(doubtful.items()))
    return Level.SUCCESS, f"{len(nodes)} hosts know of no other"


def _storage(nodes: list[ComputeNode]) -> Found:
    """Which hosts reported that they share storage. Only between these do servers move without their disks' content."""
    sharing: dict[str, list[str]] = {}
    for node in nodes:
        if (storage := node.capabilities.get(STORAGE)) is not None:
            sharing.setdefault(storage, []).append(node.host)
    if not sharing:
        return Level.SUCCESS, "no host has any"
    alone = [f"{storage} only {names[0]}" for storage, names in sorted(sharing.items()) if len(names) == 1]
    if alone:
        return Level.WARNING, f"others can't take over servers with their disks: in {'; in '.join(alone)}"
    without = len(nodes) - sum(map(len, sharing.values()))
    parts = [f"{len(names)} hosts share {storage}" for storage, names in sorted(sharing.items())]
    return Level.SUCCESS, ", ".join(parts + ([f"{without} have their own disks"] if without else []))


def _certificates(nodes: list[ComputeNode]) -> Found:
    """What hosts reported of certificates that end soon. They look when they start, and every ten minutes."""
    now, level, lines, unknown = datetime.now(UTC), Level.SUCCESS, [], []
    for node in sorted(nodes, key=lambda each: each.host):
        reported = node.capabilities.get(CERTIFICATES_ENDING)
        if reported is None:
            unknown.append(node.host)
            continue
        for found in map(CertificateEnd.reported, reported):
            lines.append(f"{node.host}: {found.sentence(now)}")
            level = max(level, Level.FAILURE if found.has_expired(now) else Level.WARNING)
    if lines:
        return level, "\n".join(lines)
    parts = f"none of {len(nodes) - len(unknown)} hosts expires soon"
    return Level.SUCCESS, f"{parts}; {len(unknown)} have not said yet: {_some(unknown)}" if unknown else parts


def _signed_orders(cell: CellMapping, nodes: list[ComputeNode]) -> Found:
    """Whether hosts refuse orders that nobody signed, as they reported last."""
    if not cell.transport_url.startswith("rabbit"):
        return Level.SUCCESS, "only RabbitMQ needs signatures"
    taking = sorted(node.host for node in nodes if not node.capabilities.get(REQUIRES_SIGNATURES))
    if taking:
        return (
            Level.WARNING,
            f"{len(taking)} of {len(nodes)} hosts carry out what nobody signed, so orders of any other host: {_some(taking)}",
        )
    return Level.SUCCESS, f"{len(nodes)} hosts refuse orders that nobody signed"


def _signed(conf: cfg.ConfigOpts, known: Collection[str]) -> Found:
    """Signatures of messages to the conductors, whose configuration this is; ``known``: all hosts. Raises Misconfigured."""
    if not (conf.transport_url or "").startswith("rabbit"):
        return Level.SUCCESS, "only RabbitMQ needs signatures"
    found = signatures.from_options(conf)
    if found is None or found.trusted is None or not found.required:
        return (
            Level.WARNING,
            "not required here, so a host may report in the name of another: see [rpc_signatures] required",
        )
    if not found.signs:
        return Level.FAILURE, "required here, but [rpc_signatures] private_key is not set: hosts will refuse orders"
    trusted = found.trusted.senders()
    hosts_trusted = {sender.name for sender in trusted if sender.is_host}
    if without := sorted(set(known) - hosts_trusted):
        return Level.WARNING, f"reports of {len(without)} hosts are refused, whose key is not trusted: {_some(without)}"
    return (
        Level.SUCCESS,
        f"required; trusted: {len(hosts_trusted)} hosts, {len(trusted) - len(hosts_trusted)} of the control plane",
    )


def _moves(conf: cfg.ConfigOpts, api: Database) -> Found:
    unfinished = journal.unfinished(api)
    stuck = [operation.instance_uuid for operation in unfinished if operation.state is SagaState.STUCK]
    # Other conductors take over after one lease: after three, none works on the move.
    long_ago = clock.read(api) - timedelta(seconds=3 * conf.moves.lease)
    left = [
        operation.instance_uuid
        for operation in unfinished
        if (operation.lease_until or operation.started_at or long_ago) < long_ago
        and operation.state is not SagaState.STUCK
    ]
    if left:
        return Level.FAILURE, f"no conductor works on {len(left)} moves, of servers {_some(left)}: does one run?"
    if stuck:
        return Level.WARNING, f"{len(stuck)} stuck, of servers {_some(stuck)}: see `causeway operation show SERVER`"
    return Level.SUCCESS, f"{len(unfinished)} under way"


def _options(conf: cfg.ConfigOpts) -> Found:
    """Options of this configuration without an effect. Bad values were found when it was read."""
    found = ignored(conf)
    return (Level.WARNING, str(found)) if found else (Level.SUCCESS, "all are used")


def _policy_files(conf: cfg.ConfigOpts) -> Found:
    """The policy files of this configuration. A broken one is a failure, though running processes keep what they read."""
    policy_opts.set_defaults(conf)
    policy_files.check(conf)
    files = policy_files.files_of(conf)
    if rules := unknown_rules(conf):
        return Level.WARNING, f"unknown rules: {', '.join(rules)}"
    return Level.SUCCESS, ", ".join(map(str, files)) or "none: all rules are the default"


def _policy(conf: cfg.ConfigOpts) -> Found:
    rule = Enforcer(conf).text_of(CROSS_CELL_RESIZE)
    if rule == NOBODY:
        return Level.WARNING, f"allowed to nobody: set {CROSS_CELL_RESIZE} in the API's policy file if they are wanted"
    return Level.SUCCESS, f"allowed to: {rule}"


def _around(conf: cfg.ConfigOpts, cleanup: ExitStack) -> dict[str, Check]:
    checks: dict[str, Check] = {"queue of the cloud": lambda: _queue(conf, conf.transport_url)}
    if not conf.placement.auth_type:
        checks["placement"] = lambda: (Level.FAILURE, "[placement] auth_type is not set")
        return checks
    around = processes.around(conf, cleanup)

    def as_check(ask: Callable[[], str]) -> Check:
        return lambda: (Level.SUCCESS, ask())

    clients: tuple[Any, ...] = (around.sessions, around.placement, around.images, around.network, around.volumes)
    checks |= {name: as_check(ask) for name, ask in reach.checks(*clients).items()}
    checks["service user"] = lambda: _service_user(conf, around)
    checks["profiles of ports"] = lambda: _profiles(around)
    return checks


def _service_user(conf: cfg.ConfigOpts, around: Surroundings) -> Found:
    held = reach.roles_of(around.sessions, "service_user")
    if held is None:
        return Level.WARNING, "[service_user] is not configured: work that outlives its user's token fails"
    if reach.SERVICE_ROLE not in held:
        return Level.WARNING, f"has no role {reach.SERVICE_ROLE}, only: {', '.join(sorted(held)) or 'none'}"
    if not conf.service_user.send_service_user_token:
        return (
            Level.WARNING,
            "[service_user] send_service_user_token is false: users' tokens may expire during long work",
        )
    return Level.SUCCESS, f"roles: {', '.join(sorted(held))}"


def _profiles(around: Surroundings) -> Found:
    """Whether the account in [neutron] may say in a port's profile where its guest is going. Only service users may."""
    held = reach.roles_of(around.sessions, "neutron")
    if held is None:
        return Level.FAILURE, "neither [neutron] nor [service_user] has an account"
    if reach.SERVICE_ROLE not in held:
        return (
            Level.WARNING,
            f"the account in [neutron] has no role {reach.SERVICE_ROLE}: Neutron may refuse what live migrations write",
        )
    return Level.SUCCESS, f"the account in [neutron] has the role {reach.SERVICE_ROLE}"


def _some(names: list[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")

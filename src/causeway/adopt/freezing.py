"""Nova's API refuses changes while its records are imported for the last time, and what runs there ends.

Nova reads its policy files anew when they change: one more file makes it refuse, and without it it accepts again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import yaml
from oslo_policy import policy as oslo_policy

from causeway import durable, policy
from causeway.adopt.nova import NovaCloud, tables
from causeway.errors import Conflict, Misconfigured
from causeway.model.states import MIGRATION_ENDED

_HEADER = "# Made by `causeway adopt freeze`: Nova's API refuses changes as long as this file is here.\n"
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_NAME = "os_compute_api:"
# The services around call these for what has begun already.
_OF_SERVICES = (
    "os_compute_api:os-server-external-events:",
    "os_compute_api:os-assisted-volume-snapshots:",
    "os_compute_api:os-volumes-attachments:swap",
)
# Asked by POST, and nothing changes.
_CONSOLES = ("os_compute_api:os-console-output", "os_compute_api:os-remote-consoles")
# An evacuation is done before its old host has cleaned up.
_SETTLED = [*(status.value for status in MIGRATION_ENDED), "finished", "done"]
#: what a change of Nova's shows in
_WATCHED = (tables.INSTANCES, tables.INSTANCE_ACTIONS, tables.MIGRATIONS)


def denied_rules() -> dict[str, str]:
    """The rules of Nova's API by which something is changed, all of them denied to everybody."""
    return {
        rule.name: policy.NOBODY
        for rule in policy.list_rules()
        if rule.name.startswith(_NAME)
        and not rule.name.startswith((*_OF_SERVICES, *_CONSOLES))
        and isinstance(rule, oslo_policy.DocumentedRuleDefault)
        and any(not _READING.issuperset(_methods(operation)) for operation in rule.operations)
    }


def _methods(operation: dict[str, Any]) -> list[str]:
    method = operation["method"]
    return [method] if isinstance(method, str) else list(method)


def write_policy(path: Path) -> None:
    """Raises Conflict if a file is there that this did not make, Misconfigured if it can't be written."""
    _refuse_others(path)
    text = _HEADER + yaml.safe_dump(denied_rules(), sort_keys=True)
    try:
        durable.write(path, text.encode())
        # Nova's API has another account.
        path.chmod(0o644)
    except OSError as failure:
        raise Misconfigured(f"{path} can't be written: {failure.strerror}.") from failure


def lift(path: Path) -> bool:
    """Deletes the file. Returns False if there was none; raises Conflict if it is another one."""
    _refuse_others(path)
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as failure:
        raise Misconfigured(f"{path} can't be deleted: {failure.strerror}.") from failure
    return True


def _refuse_others(path: Path) -> None:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            if file.read(len(_HEADER)) != _HEADER:
                raise Conflict(f"{path} is a file that `causeway adopt freeze` did not make: give another path.")
    except FileNotFoundError:
        return
    except OSError as failure:
        raise Misconfigured(f"{path} can't be read: {failure.strerror}.") from failure


def under_way(nova: NovaCloud) -> Counter[str]:
    """What Nova has begun and not ended: how many of each kind."""
    found: Counter[str] = Counter()
    requests = nova.api.count(tables.BUILD_REQUESTS)
    if requests:
        found["builds that are not scheduled"] = requests
    for cell in nova.cells:
        servers, moves = tables.INSTANCES.c, tables.MIGRATIONS.c
        tasks = cell.database.count(tables.INSTANCES, servers.deleted == 0, servers.task_state.is_not(sa.null()))
        building = cell.database.count(
            tables.INSTANCES, servers.deleted == 0, servers.task_state.is_(sa.null()), servers.vm_state == "building"
        )
        waiting = cell.database.count(tables.INSTANCES, servers.deleted == 0, servers.vm_state == "resized")
        moving = cell.database.count(tables.MIGRATIONS, moves.deleted == 0, moves.status.not_in(_SETTLED))
        for what, number in (
            ("tasks", tasks),
            ("builds", building),
            ("migrations", moving),
            ("resizes that wait for confirm or revert", waiting),
        ):
            if number:
                found[f"{what} in {cell.name}"] += number
    return found


def fingerprint(nova: NovaCloud) -> tuple[tuple[int, datetime | None], ...]:
    """The same as long as Nova changes no server."""
    return tuple(cell.database.newest_change(table) for cell in nova.cells for table in _WATCHED)


def wait_until_quiet(
    nova: NovaCloud,
    *,
    seconds: float,
    timeout: float,
    wait: Callable[[float], object],
    now: Callable[[], float],
    report: Callable[[Counter[str]], None],
) -> bool:
    """Waits until nothing is under way in Nova and its records have been the same for ``seconds``; False: not within ``timeout``.

    ``report``: called with what is under way, whenever that has changed.
    """
    began, said = now(), None
    last, since = fingerprint(nova), now()
    while True:
        running = under_way(nova)
        if running != said:
            report(running)
            said = running
        current = fingerprint(nova)
        if running or current != last:
            last, since = current, now()
        elif now() - since >= seconds:
            return True
        if now() - began >= timeout:
            return False
        wait(min(2.0, seconds))


__all__ = ["denied_rules", "fingerprint", "lift", "under_way", "wait_until_quiet", "write_policy"]

"""What does not pass by itself: a host that is dead for good, and disks or guests that are gone where they are needed.

``dead-source``, ``dead-target``: the host's machine is off (its guests with it) and its operator said so, ``forced_down``.
Whatever can be done without it must be done; where the server lives on the dead host itself, it waits there. Then the host
is switched on again, and what was left on it must go without anybody's help.

``target-lost``, ``source-lost``: what a confirm or a revert would keep is not there, or damaged. It must not happen: the server
waits in VERIFY_RESIZE as before, the other copy is untouched, and the opposite operation succeeds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from causeway.conductor.upkeep import cleaning
from causeway.model.migration import EVACUATION
from causeway.model.states import MigrationStatus, PowerState
from causeway.store.api import cleanups, journal
from tests.faults.cases import FORWARD, Case
from tests.faults.clouds.site import LocalSite, until
from tests.faults.moves import look
from tests.faults.moves.batches import LONG, audit, end_of, finish, unsettled, wait_at_points, wait_until_settled
from tests.faults.moves.flows import Flow
from tests.faults.moves.users import ask, mark, prepare

DEAD, LOST = ("dead-source", "dead-target"), ("target-lost", "source-lost")
ACTIONS = (*DEAD, *LOST)
# Servers at once.
BATCH = {"dead-source": 14, "dead-target": 14, "target-lost": 6, "source-lost": 6}
# The host is dead already when the user asks.
BEFORE = "before it is asked for"


def points_of(flow: Flow, action: str) -> list[str]:
    if not flow.is_plain:
        return []
    if action in LOST:
        wanted = {"target-lost": "confirm", "source-lost": "revert"}[action]
        return list(LOSSES[action].get(flow.backing, [])) if flow.operation == wanted else []
    if flow.reach == "host":
        return []
    (recipe,) = flow.recipes
    # In its first step a resize has no target yet.
    steps = flow.steps(recipe)[1:] if flow.operation == "resize" else flow.steps(recipe)
    points = [f"{recipe}.{step}.do.{side}" for step in steps for side in ("before", "after")]
    return points if flow.operation == "resize" else [BEFORE, *points]


def run_batch(site: LocalSite, flow: Flow, action: str, points: list[str]) -> list[Case[Flow]]:
    return (_run_dead if action in DEAD else _run_lost)(site, flow, action, points)


# a dead host


def _run_dead(site: LocalSite, flow: Flow, action: str, points: list[str]) -> list[Case[Flow]]:
    servers = prepare(site, flow, len(points))
    found: dict[str, list[str]] = {uuid: [] for uuid in servers}
    taken: dict[str, str] = {}
    if BEFORE in points:
        taken[servers[0]] = BEFORE
    at_once = [uuid for uuid in servers if uuid not in taken]
    site.arm({point: {"delay": LONG, "times": 1} for point in points if point != BEFORE})
    answers = {uuid: ask(site, flow, flow.operation, uuid) for uuid in at_once}
    wait_at_points(site, set(points) - {BEFORE})
    for hit in site.hits():
        taken[journal.get(site.api, hit["move"]).instance_uuid] = hit["point"]
    dead = sorted({host for uuid in servers for name, host in _hosts_of(site, uuid).items() if name == action})
    for host in dead:
        site.kill_host(host)
    answers |= {uuid: ask(site, flow, flow.operation, uuid) for uuid in servers if uuid not in answers}
    site.disarm()
    for uuid in wait_until_settled(site, servers):
        if not _lives_there(site, uuid, dead):
            found[uuid].append(f"not settled without {', '.join(dead)}: {unsettled(site, uuid)}")
    ends = {}
    for uuid in servers:
        running = {host for host, state in site.guests.power_states(uuid).items() if state is PowerState.RUNNING}
        wanted = set() if _lives_there(site, uuid, dead) else {site.admin.compute.get_server(uuid).compute_host}
        if running != wanted:
            found[uuid].append(f"guests without {', '.join(dead)}: running on {running}, not {wanted}")
    for host in dead:
        site.revive_host(host)
    for uuid in wait_until_settled(site, servers):
        found[uuid].append(f"not settled: {unsettled(site, uuid)}")
    for uuid in servers:
        ends[uuid] = end_of(flow, look.is_done(site, flow.operation, uuid), answers[uuid].is_refused)
        _switch_on(site, uuid, flow, dead)
        found[uuid] += until(lambda uuid=uuid: look.complaints(site, uuid, mark(uuid)), lambda seen: not seen, 10)  # type: ignore[misc]
    _carry_out_missed(site)
    audit(site, found)
    finish(site, flow, servers, found)
    audit(site, found)
    cases = {point: Case(flow, action, point) for point in points}
    for uuid, point in taken.items():
        if point in cases:
            cases[point].reached, cases[point].end = True, ends[uuid]
            cases[point].complain(look.rated(found[uuid]))
    return list(cases.values())


def _carry_out_missed(site: LocalSite) -> None:
    """Hosts carry out the orders that were noted for them, now rather than when a conductor looks next."""
    services = site.cloud.conductor._services

    def noted() -> object:
        cleaning.look(services)
        return cleanups.hosts(site.api, evacuation=EVACUATION, evacuated=MigrationStatus.DONE)

    until(noted, lambda hosts: not hosts, 10)


def _hosts_of(site: LocalSite, uuid: str) -> dict[str, str]:
    """action -> host. A move that stands before its scheduling has no target yet."""
    migration = next(iter(site.admin.compute.migrations(instance_uuid=uuid)))
    hosts = {"dead-source": migration.source_compute, "dead-target": migration.dest_compute}
    return {action: host for action, host in hosts.items() if host is not None}


def _lives_there(site: LocalSite, uuid: str, dead: list[str]) -> bool:
    return site.admin.compute.get_server(uuid).compute_host in dead


def _switch_on(site: LocalSite, uuid: str, flow: Flow, dead: list[str]) -> None:
    """Guests of a machine that was off are off: their users start them, after a confirm if one is waited for."""
    server = site.admin.compute.get_server(uuid)
    if server.compute_host not in dead:
        return
    if server.status == "ERROR" and PowerState.RUNNING not in site.guests.power_states(uuid).values():
        # Nobody knew whether it had handed the guest over, and nobody had its disks yet: they are in their place.
        site.member.compute.reboot_server(uuid, "HARD")
        until(lambda: look.is_settled(site, uuid), bool)
        return
    if site.guests.power_states(uuid) != {server.compute_host: PowerState.SHUTDOWN}:
        return
    if server.status == "VERIFY_RESIZE":
        ask(site, flow, "confirm", uuid)
        until(lambda: look.is_settled(site, uuid), bool)
        server = site.admin.compute.get_server(uuid)
    if server.status == "SHUTOFF":
        site.member.compute.start_server(uuid)
    elif server.status == "ACTIVE":
        site.member.compute.reboot_server(uuid, "HARD")
    until(lambda: look.is_settled(site, uuid), bool)


# what is gone


def _guest_and_disks(site: LocalSite, host: str, uuid: str) -> None:
    site.cloud.computes[host].host.driver.destroy(uuid, [], [], destroy_disks=True)


def _disk(name: str, content: bytes | None) -> Callable[[LocalSite, str, str], None]:
    """A disk of a guest that is off has this content; None: it is gone."""

    def lose(site: LocalSite, host: str, uuid: str) -> None:
        site.cloud.computes[host].host.driver.power_off(uuid, 0)
        _write(site, host, uuid, name, content)

    return lose


def _stashed(name: str, content: bytes | None) -> Callable[[LocalSite, str, str], None]:
    return lambda site, host, uuid: _write(site, host, f"{uuid}_resize", name, content)


def _write(site: LocalSite, host: str, folder: str, name: str, content: bytes | None) -> None:
    path = site.state.host(host) / "instances" / folder / name
    assert path.exists(), path
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)


def _stash(site: LocalSite, host: str, uuid: str) -> None:
    site.cloud.computes[host].host.driver.delete_stashed_disks(uuid)


TARGET: dict[str, Callable[[LocalSite, str, str], None]] = {
    "the guest and its disks": _guest_and_disks,
    "the disk of a guest that is off": _disk("disk", None),
    "torn disk of a guest that is off": _disk("disk", b""),
}
SOURCE: dict[str, Callable[[LocalSite, str, str], None]] = {
    "the stashed disks": _stash,
    "one stashed disk": _stashed("disk", None),
    "torn stashed disk": _stashed("disk", b""),
}
# action -> backing -> what is lost -> how
LOSSES: dict[str, dict[str, dict[str, Callable[[LocalSite, str, str], None]]]] = {
    "target-lost": {"image": TARGET, "numa": TARGET, "volume": {"the guest": _guest_and_disks}},
    "source-lost": {
        "image": SOURCE,
        "numa": SOURCE,
        "disks": SOURCE | {"an ephemeral disk": _stashed("disk.eph0", None)},
    },
}


def _run_lost(site: LocalSite, flow: Flow, action: str, points: list[str]) -> list[Case[Flow]]:
    servers = dict(zip(prepare(site, flow, len(points)), points, strict=True))
    cases = {uuid: Case(flow, action, point, reached=True) for uuid, point in servers.items()}
    found: dict[str, list[str]] = {uuid: [] for uuid in servers}
    other = {"confirm": "revert", "revert": "confirm"}[flow.operation]
    side = {"target-lost": "dead-target", "source-lost": "dead-source"}[action]
    for uuid, case in cases.items():
        hosts = _hosts_of(site, uuid)
        keeper, copy = hosts[side], next(host for name, host in hosts.items() if name != side)
        LOSSES[action][flow.backing][case.point](site, keeper, uuid)
        before = _copy(site, copy, uuid)
        answer = ask(site, flow, flow.operation, uuid)
        if not until(lambda uuid=uuid: look.is_settled(site, uuid), bool):  # type: ignore[misc]
            found[uuid].append(f"not settled: {unsettled(site, uuid)}")
        case.end = end_of(flow, look.is_done(site, flow.operation, uuid), answer.is_refused)
        status = site.admin.compute.get_server(uuid).status
        if status != "VERIFY_RESIZE":
            found[uuid].append(f"status: {status}, not VERIFY_RESIZE")
        if _copy(site, copy, uuid) != before:
            found[uuid].append(f"not there any more on {copy}: {before}")
        if case.end == FORWARD:
            continue
        answer = ask(site, flow, other, uuid)
        if not answer.is_accepted:
            found[uuid].append(f"not to be saved by {other}: {answer.text}")
        until(lambda uuid=uuid: look.is_settled(site, uuid), bool)  # type: ignore[misc]
    for uuid in servers:
        found[uuid] += look.complaints(site, uuid, mark(uuid))
    audit(site, found)
    finish(site, flow, list(servers), found)
    audit(site, found)
    for uuid, case in cases.items():
        case.complain(look.rated(found[uuid]))
    return list(cases.values())


def _copy(site: LocalSite, host: str, uuid: str) -> Any:
    """What a host has of a server, with the attachments of its volumes."""
    return (
        site.guests.disks(uuid).get(host),
        site.guests.power_states(uuid).get(host),
        [status for status, _host in look.attachments(site, uuid)],
    )

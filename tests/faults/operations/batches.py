"""One batch of operations, each on a server of its own that meets a fault of its own.

The operations are asked for one after the other, each when the one before stands at its point: so it is known which fault is
whose, and one crash, one pause of a conductor, or one kill of the services around serves them all. A fault that holds nobody up
(error, hang) has the time to be got over before the next operation is asked for; after errors the process is started again all
the same.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from tests.faults.answers import Answer, call
from tests.faults.cases import FORWARD, REFUSED, ROLLED_BACK, Case
from tests.faults.clouds import killed_services, paused, shared_store
from tests.faults.clouds.roles_site import RolesSite
from tests.faults.clouds.site import ChildSite, LocalSite, Site, until
from tests.faults.complaints import LEAKED, LOST, STUCK, Complaint
from tests.faults.moves import look
from tests.faults.moves.batches import LATE, RULES
from tests.faults.operations.judge import complaints, contradictions, end_of
from tests.faults.operations.subjects import Subject, act, status_of, wait_for
from tests.faults.operations.table import Operation
from tests.faults.world import World, holding, named_snapshots, see

# Whoever meets one of these stands where they are until the process is killed, or the pause is over.
HOLDING = ("crash", killed_services.ACTION, *paused.ACTIONS)
# Seconds for an operation to come to its point; and after its end, for what is done then still.
TO_POINT, AFTERWARDS = 20.0, 2.0
# Seconds for everybody to get over a fault, and to settle what a crash left.
PATIENCE = 15.0
# What looks well is looked at again after so many seconds, because somebody may only be about to begin.
STEADY = 1.0
USERS = 6

# What `causeway audit` says of a volume that a slow conductor has connected once more to the host where its guest is.
CONNECTED_TWICE = ("audit: attachment.orphaned", "audit: attachment.connected_twice")

OperationCase = Case[Operation]
Pair = tuple[OperationCase, Subject]


def run_batch(site: Site, cases: list[OperationCase]) -> bool:
    """False if something was orphaned of which nobody knows whose it is: all cases say so.

    No two cases of a batch have the same point, and all have the same action, and the same host that is dead.
    """
    ((action, dead),) = {(case.action, case.flow.kills_host) for case in cases}
    at_first = see(site)
    pairs = [(case, Subject()) for case in cases]
    with ThreadPoolExecutor(USERS, thread_name_prefix="users") as users:
        list(users.map(lambda pair: pair[0].flow.prepare(site, pair[1]), pairs))
    _remember(site, pairs)
    if dead is not None:
        site.kill_host(dead)
    makers = _break(site, pairs, action)
    if dead is not None:
        _restore_guest(site, pairs, dead)
    _settle(site, pairs)
    for uuid, disagreements in look.audit(site).items():
        for case, subject in pairs:
            if subject.uuid is not None and (
                uuid == subject.uuid or any(subject.uuid in each for each in disagreements)
            ):
                known = CONNECTED_TWICE if _connects_twice(case) else ()
                case.complain([Complaint(LOST, each) for each in disagreements if not each.startswith(known)])
    with ThreadPoolExecutor(USERS, thread_name_prefix="users") as users:
        list(users.map(lambda pair: _use(site, *pair), pairs))
    return _check_world(site, pairs, at_first, makers)


def _connects_twice(case: OperationCase) -> bool:
    """Whether the attachment that is made too late stays until the server loses the volume: its guest may use the connection."""
    is_live = "live-migrate" in case.flow.name
    is_late = case.action in ("hang", *paused.ACTIONS)
    return is_late and is_live and case.point == "call.volume POST /v3/attachments.request"


def _remember(site: Site, pairs: list[Pair]) -> None:
    world = see(site)
    for case, subject in pairs:
        subject.before = holding(site, world, subject.uuid, subject.volume_id)
        found = list(contradictions(site, subject, case.flow, subject.before))
        assert not found, f"{case.name} is not prepared: {found}"


# faults


def _break(site: Site, pairs: list[Pair], action: str) -> dict[str, Subject]:
    """Asks for everything, and lets the fault strike. Volumes that were made meanwhile -> for whom."""
    rules: dict[str, Any] = dict(paused.COUNTED) if action in paused.ACTIONS else {}
    makers: dict[str, Subject] = {}
    known = _volumes(site)
    site.arm({})
    if isinstance(site, RolesSite):
        killed_services.discard_hits(site)
    asked: list[Future[None]] = []
    standing: list[dict[str, Any]] = []
    with ThreadPoolExecutor(len(pairs), thread_name_prefix="users") as users:
        for case, subject in pairs:
            # Of those that have passed, and were only counted.
            passed = len(_taken_at(site, case))
            if action == killed_services.ACTION:
                assert isinstance(site, RolesSite)
                killed_services.arm(site, [case.point])
            else:
                rules[case.point] = RULES[action] | {"times": passed + 1}
                site.arm_also(rules)
            asked.append(users.submit(_ask, site, case, subject))
            if action in paused.ACTIONS:
                asked[-1].result()
            case.reached = _comes_to_point(site, case, subject, asked[-1], passed)
            standing += _hits_at(site, case.point)[passed:]
            if action not in HOLDING:
                _gets_over_it(site, subject, asked[-1])
            fresh = _volumes(site) - known
            makers |= dict.fromkeys(fresh, subject)
            known |= fresh
        if isinstance(site, ChildSite):
            site.kill()
            site.disarm()
            site.restart()
        elif isinstance(site, RolesSite) and action == killed_services.ACTION:
            killed_services.strike(site)
        elif isinstance(site, RolesSite):
            _pause(site, pairs, action, standing)
    for future in asked:
        future.result()
    if isinstance(site, LocalSite):
        # Who was too slow has learnt of it, too.
        assert until(site.is_idle, bool)
    site.disarm()
    return makers


def _pause(site: RolesSite, pairs: list[Pair], action: str, standing: list[dict[str, Any]]) -> None:
    """A conductor is stopped while operations stand at their points in it; it is woken at once, or when all are settled.

    ``standing``: the hits of those operations.
    """
    what = paused.pause(site, [hit for hit in standing if hit["move"]], dict(paused.COUNTED))
    if action == "long-pause":
        until(lambda: all(is_settled(site, subject.uuid) for _, subject in pairs), bool, PATIENCE)
    paused.wake(site, what)
    until(lambda: all(is_settled(site, subject.uuid) for _, subject in pairs), bool, PATIENCE)
    for case, subject in pairs:
        if subject.uuid is not None:
            uuid = subject.uuid
            case.complain(look.rated(until(lambda uuid=uuid: paused.complaints(site, what, uuid), _is_nothing, LATE)))  # type: ignore[misc]


def _is_nothing(found: list[str]) -> bool:
    return not found


def _restore_guest(site: Site, pairs: list[Pair], host: str) -> None:
    """When everything is settled without the host. Guests of servers that stayed there are off: their users start them."""
    until(lambda: all(is_settled(site, subject.uuid) for _, subject in pairs), bool, PATIENCE)
    for case, subject in pairs:
        if not is_settled(site, subject.uuid):
            case.complain([Complaint(STUCK, f"not settled while {host} is dead")])
    site.revive_host(host)
    for _, subject in pairs:
        # Hosts report: what is off may be known to be off by now.
        status, task = status_of(site, subject)
        if subject.uuid is None or task is not None or host not in site.guests.power_states(subject.uuid):
            continue
        if status == "ACTIVE" and look.on_host(site, subject.uuid) == host:
            act(site, subject, "reboot", {"type": "HARD"})
        elif status == "SHUTOFF" and look.on_host(site, subject.uuid) == host:
            act(site, subject, "os-start")


def _ask(site: Site, case: OperationCase, subject: Subject) -> None:
    subject.answer = case.flow.ask(site, subject)


def _hits_at(site: Site, point: str) -> list[dict[str, Any]]:
    return [hit for hit in site.hits() if hit["point"] == point]


def _taken_at(site: Site, case: OperationCase) -> Sequence[object]:
    """Who came to the point so far."""
    if case.action == killed_services.ACTION:
        assert isinstance(site, RolesSite)
        return killed_services.held(site, case.point)
    return _hits_at(site, case.point)


def _comes_to_point(site: Site, case: OperationCase, subject: Subject, asked: Future[None], passed: int) -> bool:
    """``passed``: how many came there before. A conductor that will be paused is sent all operations of the server."""
    passed_on: set[str] = set()
    end, done_at = time.monotonic() + TO_POINT, 0.0
    while (now := time.monotonic()) < end:
        if len(_taken_at(site, case)) > passed:
            return True
        if case.action in paused.ACTIONS and isinstance(site, RolesSite) and subject.uuid is not None:
            paused.pass_on_newest(site, subject.uuid, passed_on)
        if not asked.done() or not is_settled(site, subject.uuid):
            done_at = 0.0
        elif not done_at:
            done_at = now
        elif now - done_at > AFTERWARDS:
            return False
        time.sleep(0.02)
    return False


def is_settled(site: Site, uuid: str | None) -> bool:
    """Whether nobody is known to work on the server. Asks the API for nothing: that would reach points."""
    if uuid is None:
        return True
    return look.is_settled(site, uuid)


def _gets_over_it(site: Site, subject: Subject, asked: Future[None]) -> None:
    """Or has the time to."""
    until(lambda: asked.done() and is_settled(site, subject.uuid), bool, PATIENCE)


def _volumes(site: Site) -> set[str]:
    found = site.admin.block_storage.get("/volumes", params={"all_tenants": "1"}).json()["volumes"]
    return {each["id"] for each in found}


# what came of it


def _settle(site: Site, pairs: list[Pair]) -> None:
    """Waits until all is well, or patience is over; what is wrong then is what the cases say."""
    found = until(lambda: _judge(site, pairs), lambda found: not any(found), PATIENCE)
    if not any(found):
        time.sleep(STEADY)
        found = until(lambda: _judge(site, pairs), lambda found: not any(found), PATIENCE)
    for (case, _), wrong in zip(pairs, found, strict=True):
        case.complain(wrong)


def _judge(site: Site, pairs: list[Pair]) -> list[list[Complaint]]:
    world = see(site)
    by_name = {server["name"]: uuid for uuid, server in world.servers.items()}
    found = []
    for case, subject in pairs:
        # Whoever got no answer to their request for a server looks for it by its name.
        subject.uuid = subject.uuid or by_name.get(subject.name)
        now = holding(site, world, subject.uuid, subject.volume_id)
        assert subject.before is not None
        if _connects_twice(case):
            now = replace(now, attachments=[each for each in now.attachments if each[1] != "attaching"])
        case.end = end_of(case.flow, now, subject.before, subject.answer)
        wrong = complaints(site, subject, case.flow, now)
        if subject.uuid is not None and now.host is not None and now.status is not None:
            # Of a server that waits for confirm or revert, its source's.
            kept = subject.uuid in world.waiting
            wrong += look.rated(shared_store.complaints(site, subject.uuid, now.host, is_put_aside=kept))
        if not wrong and not is_settled(site, subject.uuid):
            wrong = [Complaint(STUCK, "somebody still works on it")]
        found.append(wrong)
    return found


def _use(site: Site, case: OperationCase, subject: Subject) -> None:
    """What was not done is asked for again; a shelved server comes back; and all that its user has can be deleted."""
    if subject.uuid is not None:
        with _complaining(case):
            # A host does not die once more.
            again = case.end in (ROLLED_BACK, REFUSED) and case.flow.kills_host is None and _was_there(subject)
            if again and status_of(site, subject)[0] is not None:
                _ask_again(site, case, subject)
        with _complaining(case):
            if (status_of(site, subject)[0] or "").startswith("SHELVED"):
                _unshelve(site, case, subject)
        with _complaining(case):
            # First: a volume with snapshots can't be deleted with its server.
            _delete_images(site, case, subject)
        with _complaining(case):
            if status_of(site, subject)[0] is not None:
                _require(call(site, "DELETE", f"/servers/{subject.uuid}"), "to delete the server")
            wait_for_end(site, subject)
    with _complaining(case):
        _throw_away(site, subject)


def _was_there(subject: Subject) -> bool:
    """A server that was not made can't be asked for again: another one can."""
    return subject.before is not None and subject.before.status is not None


@contextmanager
def _complaining(case: OperationCase) -> Iterator[None]:
    """What can't be done inside is a complaint of the case."""
    try:
        yield
    except AssertionError as failure:
        case.complain([Complaint(STUCK, str(failure))])


def _require(answer: Answer, what: str) -> None:
    assert answer.is_accepted, f"{what}: {answer.status} {answer.text[:200]}"


def _ask_again(site: Site, case: OperationCase, subject: Subject) -> None:
    before = subject.before
    assert before is not None
    _require(case.flow.ask(site, subject), "asked again")

    def wrong() -> list[Complaint]:
        now = holding(site, see(site), subject.uuid, subject.volume_id)
        found = list(contradictions(site, subject, case.flow, now))
        if end_of(case.flow, now, before) != FORWARD:
            found.append(Complaint(STUCK, f"not done: {now.status} {now.fault or ''}"))
        return found

    found = until(wrong, lambda found: not found, PATIENCE)
    case.complain([Complaint(each.kind, f"asked again: {each.text}") for each in found])


def _unshelve(site: Site, case: OperationCase, subject: Subject) -> None:
    _require(act(site, subject, "unshelve"), "to unshelve the server")
    wait_for(site, subject, "ACTIVE", PATIENCE)

    def wrong() -> list[Complaint]:
        now = holding(site, see(site), subject.uuid, subject.volume_id)
        return list(contradictions(site, subject, case.flow, now))

    found = until(wrong, lambda found: not found, PATIENCE)
    case.complain([Complaint(each.kind, f"unshelved: {each.text}") for each in found])


def wait_for_end(site: Site, subject: Subject) -> None:
    seen = until(lambda: status_of(site, subject), lambda seen: seen[0] is None, PATIENCE)
    assert seen[0] is None, f"not deleted: {seen[0]} with task {seen[1]}"


def _throw_away(site: Site, subject: Subject) -> None:
    """What the user made for the server, and got of it."""
    member = site.member
    if subject.volume_id is not None:
        storage, volume_id = member.block_storage, subject.volume_id
        state = until(lambda: storage.get_volume(volume_id).status, lambda status: status == "available", 5)
        assert state == "available", f"the user's volume is {state} when the server is deleted"
        # Those that hypervisors were asked for: block storage keeps a volume while it has snapshots.
        for snapshot in list(site.admin.block_storage.snapshots(all_projects=True, volume_id=volume_id)):
            path = f"/snapshots/{snapshot.id}"
            site.admin.block_storage.post(f"{path}/action", json={"os-reset_status": {"status": "error"}})
            site.admin.block_storage.delete(path)
        storage.delete_volume(volume_id)
        until(lambda: storage.find_volume(volume_id), lambda found: found is None)
    if subject.port_id is not None:
        port = member.network.find_port(subject.port_id)
        if port is not None and port.name == subject.name:
            assert (port.device_id, port.binding_host_id or "") == ("", ""), "the user's port is bound still"
            member.network.delete_port(subject.port_id)


def _delete_images(site: Site, case: OperationCase, subject: Subject) -> None:
    """Those that the user has of the server, with the snapshots that they name."""
    member = site.member
    for image in member.image.get("/images", params={"limit": 1000}).json()["images"]:
        if subject.uuid and image.get("instance_uuid") == subject.uuid and image["name"] in case.flow.keeps_images:
            member.image.delete_image(image["id"])
            for snapshot_id in named_snapshots(image):
                member.block_storage.delete_snapshot(snapshot_id)
                until(partial(member.block_storage.find_snapshot, snapshot_id), lambda left: left is None)


def _check_world(site: Site, pairs: list[Pair], at_first: World, makers: dict[str, Subject]) -> bool:
    """What is there now, and was not before the servers were made."""
    attributed = True
    world = see(site)
    for kind, identity in world.new_since(at_first):
        owner = _owner(world, kind, identity, pairs, makers)
        if owner is not None and owner[1].uuid in world.servers:
            # That the server itself is still there was said.
            continue
        attributed = attributed and owner is not None
        for case, _ in [owner] if owner is not None else pairs:
            case.complain(
                [
                    Complaint(
                        LEAKED, f"left when all was deleted: {kind} {identity}{_addresses_shown(world, kind, identity)}"
                    )
                ]
            )
    return attributed


def _addresses_shown(world: World, kind: str, identity: str) -> str:
    if kind not in ("volume", "snapshot", "image", "port"):
        return ""
    record = getattr(world, f"{kind}s")[identity]
    return f" ({record['status']}, {record['name'] or 'no name'})"


def _owner(world: World, kind: str, identity: str, pairs: list[Pair], makers: dict[str, Subject]) -> Pair | None:
    record = getattr(world, f"{kind}s", {}).get(identity, {})
    named = f"{identity} {record.get('device_id')} {record.get('instance')} {record.get('instance_uuid')}"
    for case, subject in pairs:
        if subject.uuid is not None and subject.uuid in named:
            return case, subject
        had = {*subject.before.volumes, *subject.before.ports} if subject.before is not None else set()
        if identity in had | {subject.volume_id, subject.port_id} or makers.get(identity) is subject:
            return case, subject
        if subject.name in (record.get("name") or ""):
            return case, subject
    return None

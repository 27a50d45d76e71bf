"""The disks of a running guest are copied before it goes off: it notices nothing, and loses nothing that it wrote meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
import requests

from causeway import errors
from causeway.compute.disks import changes, rounds
from causeway.compute.handover import part_fetch
from causeway.rpc.transport import Verdict
from tests.functional.servers.moves_cloud import PATIENCE, Cloud, until

pytestmark = pytest.mark.embedded("looks into hosts, and breaks them")

# flavor, and how the disks travel
WAYS = {
    "inside a cell": ("any.medium", "auto"),
    "directly": ("gen2.small", "auto"),
    "as images": ("gen2.small", "never"),
}
RECEIVE = {"inside a cell": "receive_round", "directly": "receive_round", "as images": "receive_part"}


@pytest.fixture
def server(cloud: Cloud) -> Any:
    server = cloud.boot("warm")
    source(cloud, server).guest_write(server.id, "before")
    return server


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, cloud: Cloud) -> str:
    cloud.option("direct", WAYS[request.param][1], "moves")
    return str(request.param)


def source(cloud: Cloud, server: Any) -> Any:
    return cloud.driver(cloud.show(server).compute_host)


def boots(cloud: Cloud, server: Any) -> int:
    return int(source(cloud, server).console_output(server.id).decode().count("CAUSEWAY-READY"))


def resize(cloud: Cloud, server: Any, way: str) -> None:
    cloud.member.compute.resize_server(server.id, WAYS[way][0])


def has_moved(cloud: Cloud, server: Any) -> None:
    """Also what comes after the pivot."""
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()


def content(cloud: Cloud, server: Any) -> str:
    return "\n".join(source(cloud, server).guest_read(server.id))


def step(cloud: Cloud, server: Any) -> Any:
    return next(each for each in cloud.moves(server)[-1].steps or [] if each.step == "CopyWhileRunning")


def without_cold_copies(cloud: Cloud) -> None:
    """Who copies all of a disk while its guest is off fails."""
    cloud.break_driver(list(cloud.parts.computes), "export_disk")


@pytest.mark.parametrize("end", ["confirm", "revert"])
def test_what_the_guest_writes_meanwhile_arrives(cloud: Cloud, server: Any, way: str, end: str) -> None:
    without_cold_copies(cloud)
    cloud.option("warm_round_seconds", 0.0, "moves")
    with cloud.held(RECEIVE[way]) as arrived:
        resize(cloud, server, way)
        assert arrived.wait(PATIENCE)
        # It runs, and its users see that it does.
        shown = cloud.show(server)
        assert (shown.status, shown.task_state, shown.power_state) == ("RESIZE", "resize_prep", 1)
        source(cloud, server).guest_write(server.id, "meanwhile " * 200)
    has_moved(cloud, server)
    assert "before" in content(cloud, server)
    assert "meanwhile " * 200 in content(cloud, server)
    assert cloud.temporary_images() == []
    assert cloud.reality(server)["transfers"] == []
    if end == "confirm":
        cloud.confirmed(server)
    else:
        cloud.reverted(server)
    assert "meanwhile " * 200 in content(cloud, server)
    assert cloud.audit().is_clean if hasattr(cloud, "audit") else True


def test_what_travels_when_the_guest_is_off_is_little(cloud: Cloud, server: Any, way: str) -> None:
    for number in range(100):
        source(cloud, server).guest_write(server.id, f"{number} " * 300)
    resize(cloud, server, way)
    has_moved(cloud, server)
    (move,) = cloud.moves(server)
    warm, off = move.data["warm"], move.data
    assert warm["sent"] > 60_000
    last = off["offer"]["disks"][0]["size"] if off["offer"] else off["snapshot"]["size"]
    assert last < warm["sent"] / 10


@pytest.mark.parametrize("broken", ["begin_round", "open_copy", "open_round"])
def test_a_driver_that_fails_costs_nothing_but_time(cloud: Cloud, server: Any, way: str, broken: str) -> None:
    cloud.break_driver(list(cloud.parts.computes), broken)
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert "before" in content(cloud, server)
    assert cloud.reality(server)["transfers"] == []
    assert cloud.temporary_images() == []


def test_a_hypervisor_that_lost_what_changed_has_all_of_it_sent(cloud: Cloud, server: Any, way: str) -> None:
    host = source(cloud, server)
    order = "prep_snapshot_based_resize_at_source"
    with cloud.held(order) as arrived:
        resize(cloud, server, way)
        assert arrived.wait(PATIENCE)
        host.end_rounds(server.id)
        host.guest_write(server.id, "late")
    has_moved(cloud, server)
    assert "late" in content(cloud, server)
    assert cloud.temporary_images() == []


def test_a_cancelled_one_is_not_noticed_by_the_guest(cloud: Cloud, server: Any, way: str) -> None:
    before, booted = cloud.reality(server), boots(cloud, server)
    with cloud.held(RECEIVE[way]) as arrived:
        resize(cloud, server, way)
        assert arrived.wait(PATIENCE)
        migration = cloud.migration(server).id
        path = f"/servers/{server.id}/migrations/{migration}"
        assert cloud.admin.compute.delete(path, microversion="2.80").status_code == 202
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.migration(server).status == "cancelled"
    assert cloud.reality(server) == before
    assert boots(cloud, server) == booted


def lost(method: str, verdict: Verdict) -> Callable[[Cloud], None]:
    return lambda cloud: cloud.lose(method, verdict)


@pytest.mark.parametrize("verdict", [Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY])
@pytest.mark.parametrize("order", ["begin_round", "receive"])
def test_an_order_or_answer_that_is_lost(cloud: Cloud, server: Any, way: str, order: str, verdict: Verdict) -> None:
    without_cold_copies(cloud)
    cloud.lose(RECEIVE[way] if order == "receive" else order, verdict)
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert "before" in content(cloud, server)
    assert cloud.temporary_images() == []


def test_a_piece_that_is_damaged_on_its_way_is_asked_for_again(
    cloud: Cloud, server: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_cold_copies(cloud)
    works, left = changes.apply, [None]

    def damaged(stream: Any, *rest: Any) -> int:
        if not left:
            return works(stream, *rest)
        left.pop()

        class Damaged:
            def readinto(self, buffer: memoryview, /) -> int:
                size: int = stream.readinto(buffer)
                if size >= 512:
                    buffer[size - 1] ^= 1
                return size

        return works(Damaged(), *rest)

    monkeypatch.setattr(changes, "apply", damaged)
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert left == []
    assert "before" in content(cloud, server)


def test_hosts_that_do_not_reach_one_another_use_the_image_service(
    cloud: Cloud, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(_host: Any, _session: Any, url: str) -> Any:
        raise errors.HostUnreachable("The server's host can't be reached from the chosen one.", details=url)

    monkeypatch.setattr(part_fetch, "_ask", unreachable)
    without_cold_copies(cloud)
    resize(cloud, server, "directly")
    has_moved(cloud, server)
    assert "before" in content(cloud, server)
    assert cloud.moves(server)[0].data["warm"]["through_images"]
    assert cloud.temporary_images() == []


def test_an_address_of_another_host_is_not_mistaken_for_the_sources(
    cloud: Cloud, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers that it does not have the disk."""
    asked, works = [], part_fetch._ask

    def elsewhere(host: Any, session: Any, url: str) -> Any:
        asked.append(url)
        return works(host, session, re.sub(r"/disks/[^/]*/", f"/disks/{uuid4()}/", url))

    monkeypatch.setattr(part_fetch, "_ask", elsewhere)
    without_cold_copies(cloud)
    resize(cloud, server, "directly")
    has_moved(cloud, server)
    assert len(asked) == 3
    assert "before" in content(cloud, server)
    assert cloud.moves(server)[0].data["warm"]["through_images"]
    assert cloud.temporary_images() == []


def test_a_server_that_is_off_moves_as_it_is(cloud: Cloud, server: Any, way: str) -> None:
    cloud.member.compute.stop_server(server.id)
    cloud.wait(server, "SHUTOFF")
    cloud.break_driver(list(cloud.parts.computes), "begin_round")
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert cloud.moves(server)[0].data["warm"] is None


def test_an_operator_may_have_it_never(cloud: Cloud, server: Any, way: str) -> None:
    cloud.option("warm", "never", "moves")
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert cloud.moves(server)[0].data["warm"] is None
    assert "before" in content(cloud, server)


def test_a_guest_that_cannot_be_made_at_first_is_made_of_the_same_copy(cloud: Cloud, server: Any, way: str) -> None:
    without_cold_copies(cloud)
    others = [host for host in cloud.parts.computes if host != cloud.show(server).compute_host]
    cloud.break_driver(others, "_boot", times=1)
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert "before" in content(cloud, server)
    until(lambda: cloud.reality(server)["transfers"], lambda left: left == [], "nothing to be left of the transfer")


def test_a_round_that_is_abandoned_half_way_is_not_missed(cloud: Cloud, server: Any) -> None:
    """The second round can't be fetched any more; what changed since the first has all that it had."""
    without_cold_copies(cloud)
    cloud.option("warm_round_seconds", 0.0, "moves")
    cloud.option("warm_rounds", 3, "moves")
    fetched = []

    def unreachable_later(host: Any, session: Any, url: str) -> Any:
        fetched.append(url)
        if len(fetched) > 1:
            raise errors.HostUnreachable("The server's host can't be reached from the chosen one.", details=url)
        source(cloud, server).guest_write(server.id, "meanwhile")
        return works(host, session, url)

    works = part_fetch._ask
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(part_fetch, "_ask", unreachable_later)
        resize(cloud, server, "inside a cell")
        has_moved(cloud, server)
    assert len(fetched) == 2
    assert "meanwhile" in content(cloud, server)


def test_a_source_that_lost_its_round_begins_another_one(cloud: Cloud, server: Any, way: str) -> None:
    """Its hypervisor ended the job in the middle; what was there of the round is no harm."""
    without_cold_copies(cloud)
    host = source(cloud, server)
    with cloud.held(RECEIVE[way]) as arrived:
        resize(cloud, server, way)
        assert arrived.wait(PATIENCE)
        record = cloud.parts.computes[host.hostname].host.rounds._read(_rounds_of(cloud, host, server))
        host.end_round(record.instance, record.number)
        host.guest_write(server.id, "meanwhile")
    has_moved(cloud, server)
    assert "meanwhile" in content(cloud, server)
    assert cloud.temporary_images() == []


def _rounds_of(cloud: Cloud, host: Any, server: Any) -> Any:
    (folder,) = cloud.parts.state.path.glob(f"hosts/{host.hostname}/rounds/*.{server.id}")
    return folder


def test_a_host_sends_no_faster_than_it_may(
    cloud: Cloud, server: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    of_host = cloud.parts.computes[cloud.show(server).compute_host].host.rounds
    monkeypatch.setattr(of_host, "_slow_down", taken.append)
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert sum(taken) == cloud.moves(server)[0].data["warm"]["sent"] or way == "as images"
    assert sum(taken) > 0


@pytest.mark.parametrize("method", ["destroy", "stash_disks", "end_rounds"])
def test_a_hand_over_that_breaks_is_repeated_with_what_was_read(
    cloud: Cloud, server: Any, way: str, method: str
) -> None:
    without_cold_copies(cloud)
    cloud.break_driver([cloud.show(server).compute_host], method, times=1)
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert "before" in content(cloud, server)
    cloud.reverted(server)
    assert cloud.reality(server)["transfers"] == []


def test_nobody_reads_a_part_without_its_secret(cloud: Cloud, server: Any) -> None:
    host = cloud.parts.computes[cloud.show(server).compute_host].host
    with cloud.held("receive_round") as arrived:
        resize(cloud, server, "directly")
        assert arrived.wait(PATIENCE)
        (move,) = cloud.moves(server)
        record = host.rounds._read(_rounds_of(cloud, source(cloud, server), server))
        number, right = record.number, record.secret
        url = f"{host.disk_server.url}/{move.id}/rounds/{number}/disk/0"
        for secret in ("", "Bearer ", "Bearer wrong"):
            assert requests.get(url, headers={"Authorization": secret}, timeout=10).status_code == 404
        headers = {"Authorization": f"Bearer {right}"}
        # Who does not say that it knows newer ones gets the digests that every release knows.
        assert requests.get(url, headers=headers, timeout=10).content.startswith(b"CWCHG1")
        headers["X-Accept-Codings"] = "zstd, blake3"
        assert requests.get(url, headers=headers, timeout=10).content.startswith(b"CWCHG2")
        others = f"{number + 1}/disk/0", f"{number}/disk/7", f"{number}/disk.eph0/0", f"{number}/..%2fround.json/0"
        for wrong in others:
            bad = f"{host.disk_server.url}/{move.id}/rounds/{wrong}"
            assert requests.get(bad, headers=headers, timeout=10).status_code == 404
    has_moved(cloud, server)


@pytest.mark.parametrize("verdict", [Verdict.LOSE_REQUEST, Verdict.LOSE_REPLY])
def test_parts_that_were_sent_ahead_are_no_harm(
    cloud: Cloud, server: Any, way: str, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source has sent the next part when one has to be asked for again."""
    without_cold_copies(cloud)
    monkeypatch.setattr(rounds, "PART_BYTES", 512)
    for number in range(20):
        source(cloud, server).guest_write(server.id, f"{number} " * 100)
    cloud.lose(RECEIVE[way], verdict)
    resize(cloud, server, way)
    has_moved(cloud, server)
    assert cloud.moves(server)[0].data["warm"]["ended"] is None
    assert "19 " * 100 in content(cloud, server)
    assert cloud.temporary_images() == []


def test_an_idle_guest_is_handed_over_after_a_round_without_anything(cloud: Cloud, server: Any, way: str) -> None:
    """More rounds would bring nothing; what is written afterwards comes with the last changes."""
    without_cold_copies(cloud)
    cloud.option("warm_round_seconds", 0.0, "moves")
    seen: list[tuple[int, int | None]] = []
    host = source(cloud, server)

    def begin(instance: Any, names: Any, number: int, works: Any = host.begin_round, **more: Any) -> Any:
        seen.append((number, more["since"]))
        return works(instance, names, number, **more)

    def shut_down(*args: Any, works: Any = host.power_off, **more: Any) -> Any:
        if "late" not in host.guest_read(server.id):
            host.guest_write(server.id, "late")
        return works(*args, **more)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(host, "begin_round", begin)
        patches.setattr(host, "power_off", shut_down)
        resize(cloud, server, way)
        has_moved(cloud, server)
    (first, nothing), (_, since) = seen
    assert (nothing, since) == (None, first)
    assert cloud.moves(server)[0].data["warm"]["ended"] is None
    assert "late" in content(cloud, server)

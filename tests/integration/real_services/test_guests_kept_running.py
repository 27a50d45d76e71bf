"""Real guests between real services that keep running while they move, or stand still for a moment; with the network cut, too.

A guest has an open TCP session with somebody outside: it shows whether it continued, and for how long it was not heard.
"""

from __future__ import annotations

import threading
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from causeway.model.sagas import StepRecord
from causeway.store.api import journal
from tests.functional.processes.own_process import until
from tests.integration.real_services import sessions
from tests.integration.real_services.guests import GuestCloud, guest_cloud_here
from tests.integration.real_services.sessions import Sessions, Word
from tests.integration.real_services.test_main_job import volume_is
from tests.integration.real_services.test_real_guests import PATIENCE, answers, ended, is_whole, report

pytestmark = [pytest.mark.timeout(900), pytest.mark.libvirt]

SOURCE, NEIGHBOUR, ELSEWHERE = "cell1-host1", "cell1-host2", "cell2-host1"
CELLS = {"cell1": [SOURCE, NEIGHBOUR], "cell2": [ELSEWHERE]}
CUT_SECONDS = 40
# MiB/s: a guest's memory takes some seconds, so that it can be caught on its way.
LIBVIRT = {"live_migration_bandwidth": 6}
# Seconds of silence outside, that nobody who talks with a guest takes for its end. Guests are emulated.
LONGEST_LIVE, LONGEST_NEAR_LIVE = 20.0, 60.0


@pytest.fixture(scope="module")
def running() -> Iterator[GuestCloud]:
    with guest_cloud_here(cells=CELLS, libvirt_options=LIBVIRT) as cloud:
        yield cloud


@pytest.fixture
def cloud(running: GuestCloud) -> Iterator[GuestCloud]:
    yield running
    running.delete_all()


@dataclass
class Talker:
    """A server whose guest talks with somebody outside. ``heard``: the first word that was heard of it."""

    server: Any
    volume: Any
    sessions: Sessions
    heard: Word

    def longest_silence(self, since: float) -> float:
        """The same boot, in the same session, without a word missing. Returns the longest silence since, in seconds."""
        now = self.sessions.word(time.monotonic())
        assert (now.boot, now.connection) == (self.heard.boot, self.heard.connection)
        said = [word for word in self.sessions.words() if word.connection == now.connection]
        assert [word.count for word in said] == list(range(1, len(said) + 1))
        return max(after.at - before.at for before, after in pairwise(said) if after.at > since)


@pytest.fixture
def talker(cloud: GuestCloud) -> Iterator[Talker]:
    """On `SOURCE`, with a volume; `NEIGHBOUR`'s switch has a port for whom it talks with."""
    with ExitStack() as opened:
        address = cloud.services.switches.address(NEIGHBOUR, cloud.admin, cloud.network)
        heard = opened.enter_context(Sessions(cloud.machines.inside(NEIGHBOUR)))
        began = time.monotonic()
        volume = cloud.member.block_storage.create_volume(size=1, name="data")
        cloud.member.block_storage.wait_for_status(volume, "available", wait=60)
        reported = b64encode(sessions.script(address).encode()).decode()
        server = cloud.boot_on(SOURCE, user_data=reported, config_drive=True)
        cloud.member.compute.create_volume_attachment(server, volumeId=volume.id)
        volume_is(cloud, volume, "in-use")
        until(lambda: report(cloud, server).lines("vdb"), lambda lines: lines == 1, "the guest to mark the volume")
        yield Talker(server, volume, heard, heard.word(began))


def steps(cloud: GuestCloud, server: Any) -> dict[str, StepRecord]:
    """Of the server's newest operation, what was done."""
    newest = journal.of_server(cloud.api_database, server.id)[-1]
    return {step.step: step for step in journal.steps(cloud.api_database, newest.id) if step.phase == "do"}


def migrate_live(cloud: GuestCloud, server: Any, host: str) -> None:
    body = {"os-migrateLive": {"host": host, "block_migration": "auto"}}
    answer = cloud.admin.compute.post(f"/servers/{server.id}/action", json=body, microversion="2.96")
    assert answer.status_code == 202, answer.text


def migration(cloud: GuestCloud, server: Any) -> dict[str, Any]:
    """The newest of the server."""
    path = f"/os-migrations?instance_uuid={server.id}"
    found: list[dict[str, Any]] = cloud.admin.compute.get(path, microversion="2.80").json()["migrations"]
    return max(found, key=lambda each: each["id"])


@contextmanager
def meanwhile(cloud: GuestCloud, host: str) -> Iterator[None]:
    """The host is cut off for a while, from everybody."""
    cut = threading.Thread(target=cloud.machines.cut_off, args=(host, CUT_SECONDS))
    cut.start()
    try:
        yield
    finally:
        cut.join()


@contextmanager
def hypervisors_apart(cloud: GuestCloud) -> Iterator[None]:
    """As behind a firewall: those of the two cells don't reach one another."""
    network = cloud.machines.lab.network
    with network.hypervisors_apart(SOURCE), network.hypervisors_apart(ELSEWHERE):
        yield


def test_a_guest_is_off_for_its_last_changes_only(cloud: GuestCloud, talker: Talker) -> None:
    before = report(cloud, talker.server)
    cloud.admin.compute.migrate_server(talker.server, host=ELSEWHERE)
    found = ended(cloud, talker.server, "VERIFY_RESIZE")
    assert found.compute_host == ELSEWHERE
    now = report(cloud, talker.server, after_boot=before.boot)
    assert (now.mac, now.ip) == (before.mac, before.ip)
    for disk in ("vda", "vdb"):
        assert (now.first(disk), now.lines(disk)) == (before.first(disk), before.lines(disk) + 1)
    done = steps(cloud, talker.server)
    assert done["CopyWhileRunning"].bytes_done
    cloud.member.compute.confirm_server_resize(talker.server.id)
    ended(cloud, talker.server, "ACTIVE")
    is_whole(cloud, talker.server, talker.volume)


def test_a_guest_is_copied_while_its_host_is_cut_off_for_a_while(cloud: GuestCloud, talker: Talker) -> None:
    before, began = report(cloud, talker.server), time.monotonic()
    cloud.fault("warm.part.out", delay=5)
    cloud.admin.compute.migrate_server(talker.server, host=ELSEWHERE)
    cloud.hit("warm.part.out")
    with meanwhile(cloud, SOURCE):
        pass
    found = ended(cloud, talker.server, "VERIFY_RESIZE", "ACTIVE")
    if found.status == "ACTIVE":
        # Abandoned: the guest never noticed.
        talker.longest_silence(began)
        assert found.compute_host == SOURCE
    else:
        now = report(cloud, talker.server, after_boot=before.boot)
        assert (now.first("vda"), now.first("vdb")) == (before.first("vda"), before.first("vdb"))
        cloud.settle()
        cloud.member.compute.revert_server_resize(talker.server.id)
        ended(cloud, talker.server, "ACTIVE")
    is_whole(cloud, talker.server, talker.volume)


@pytest.mark.parametrize("target", [NEIGHBOUR, ELSEWHERE])
def test_a_guest_goes_live_inside_its_cell_and_to_the_other_one(cloud: GuestCloud, talker: Talker, target: str) -> None:
    began = time.monotonic()
    migrate_live(cloud, talker.server, target)
    found = ended(cloud, talker.server, "ACTIVE")
    assert found.compute_host == target
    assert "MigrateGuest" in steps(cloud, talker.server)
    assert migration(cloud, talker.server)["status"] == "completed"
    assert talker.longest_silence(began) < LONGEST_LIVE
    is_whole(cloud, talker.server, talker.volume)


@pytest.mark.parametrize(
    ("target", "victim"), [(NEIGHBOUR, SOURCE), (NEIGHBOUR, NEIGHBOUR), (ELSEWHERE, SOURCE), (ELSEWHERE, ELSEWHERE)]
)
def test_a_guest_whose_way_is_cut_while_it_goes_live_runs_on(
    cloud: GuestCloud, talker: Talker, target: str, victim: str
) -> None:
    began = time.monotonic()
    cloud.fault("live.transfer.in", delay=0)
    migrate_live(cloud, talker.server, target)
    assert cloud.hit("live.transfer.in")["host"] == SOURCE
    with meanwhile(cloud, victim):
        pass
    found = ended(cloud, talker.server, "ACTIVE")
    # What both hypervisors show decides, not the error of whoever was cut off.
    arrived = found.compute_host == target
    until(
        lambda: migration(cloud, talker.server)["status"],
        lambda status: status == ("completed" if arrived else "failed"),
        "the migration to end",
        PATIENCE,
    )
    talker.longest_silence(began)
    is_whole(cloud, talker.server, talker.volume)


def test_a_guest_goes_near_live_to_the_other_cell(cloud: GuestCloud, talker: Talker) -> None:
    began = time.monotonic()
    with hypervisors_apart(cloud):
        migrate_live(cloud, talker.server, ELSEWHERE)
        found = ended(cloud, talker.server, "ACTIVE")
    assert found.compute_host == ELSEWHERE
    assert migration(cloud, talker.server)["status"] == "completed"
    assert "SaveGuest" in steps(cloud, talker.server)
    assert talker.longest_silence(began) < LONGEST_NEAR_LIVE
    is_whole(cloud, talker.server, talker.volume)


@pytest.mark.parametrize(
    ("point", "victim"), [("disk.fetch.before", SOURCE), ("compute.wake_guest_at_dest.before", ELSEWHERE)]
)
def test_a_guest_whose_memory_is_cut_off_on_its_way_continues_once(
    cloud: GuestCloud, talker: Talker, point: str, victim: str
) -> None:
    began = time.monotonic()
    with hypervisors_apart(cloud):
        cloud.fault(point, delay=5)
        migrate_live(cloud, talker.server, ELSEWHERE)
        # The target fetches it from the source.
        assert cloud.hit(point)["host"] == ELSEWHERE
        with meanwhile(cloud, victim):
            pass
        ended(cloud, talker.server, "ACTIVE")
    # It stood still meanwhile, and continued there or here: the same boot.
    talker.longest_silence(began)
    is_whole(cloud, talker.server, talker.volume)


def test_a_guest_answers_from_every_host_that_it_went_to(cloud: GuestCloud, talker: Talker) -> None:
    """There and back: to the other cell with its memory, to a neighbour of the cell it came from."""
    began = time.monotonic()
    with hypervisors_apart(cloud):
        migrate_live(cloud, talker.server, ELSEWHERE)
        ended(cloud, talker.server, "ACTIVE")
        migrate_live(cloud, talker.server, SOURCE)
        assert ended(cloud, talker.server, "ACTIVE").compute_host == SOURCE
    migrate_live(cloud, talker.server, NEIGHBOUR)
    assert ended(cloud, talker.server, "ACTIVE").compute_host == NEIGHBOUR
    talker.longest_silence(began)
    answers(cloud, talker.server)
    is_whole(cloud, talker.server, talker.volume)

"""A call to Ceph ends within its limit, whatever the process does that makes it, and says what happened without addresses."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from causeway import errors
from causeway.virt.libvirt.storage.rbd import protocol
from causeway.virt.libvirt.storage.rbd.client import Limits, RbdClient
from causeway.virt.libvirt.storage.rbd.protocol import Access, Image, Refused
from causeway.virt.libvirt.storage.rbd.store import RbdStore

SHORT = Limits(start=30, read=1, write=1, whole_disk=1)
LONG = Limits(start=30, read=30, write=30, whole_disk=30)
WORKER = (sys.executable, str(Path(__file__).with_name("misbehaving_worker.py")))


class Site:
    """A client of misbehaving workers, and what these were asked."""

    def __init__(self, folder: Path) -> None:
        self.asked_file = folder / "asked"
        self.clients: list[RbdClient] = []

    def client(self, limits: Limits = LONG, user: str = "compute") -> RbdClient:
        client = RbdClient(Access(str(self.asked_file), user, "vms", 5, 5), limits, WORKER)
        self.clients.append(client)
        return client

    def ready(self, limits: Limits) -> RbdClient:
        """Has a worker already: the limits of its calls begin when it is asked."""
        client = self.client(Limits(limits.start, 30, 30, 30))
        client.ask(protocol.Names(), list[str])
        client._limits = limits
        return client

    @property
    def asked(self) -> list[str]:
        return self.asked_file.read_text().splitlines()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    for client in site.clients:
        client.close()


def workers() -> set[int]:
    """The processes that this one has started, and that did not end."""
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    return {int(pid) for pid in children.read_text().split()}


@pytest.mark.parametrize("call", [protocol.Describe("hang"), protocol.Grow("hang", 1), protocol.Remove("hang")])
def test_a_call_without_an_answer_ends_in_time_and_with_its_worker(site: Site, call: protocol.Call) -> None:
    before = workers()
    client = site.ready(SHORT)
    assert workers() - before
    began = time.monotonic()
    with pytest.raises(errors.StorageUnreachable, match="did not answer in time"):
        client.ask(call, None)
    assert time.monotonic() - began >= 1
    assert workers() == before
    # The next one gets another worker.
    client._limits = LONG
    assert client.ask(protocol.Names(), list[str]) == []


def test_a_call_that_hangs_keeps_no_other_one_waiting(site: Site) -> None:
    client = site.ready(LONG)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(client, "_limits", Limits(30, 6, 6, 6))
        hanging = [threading.Thread(target=_unanswered, args=(client,)) for _ in range(3)]
        for each in hanging:
            each.start()
        found: Image = client.ask(protocol.Describe("disk"), Image)
        assert found.size == 512
        assert all(each.is_alive() for each in hanging)
        for each in hanging:
            each.join(60)


def _unanswered(client: RbdClient) -> None:
    with pytest.raises(errors.StorageUnreachable):
        client.ask(protocol.Describe("hang"), Image)


def test_calls_for_which_there_is_no_room_say_so_in_time(site: Site) -> None:
    client = site.ready(LONG)
    client._limits = SHORT
    for _ in range(4):
        client._turns[False].acquire()
    with pytest.raises(errors.StorageUnreachable, match="is busy"):
        client.ask(protocol.Names(), list[str])


@pytest.mark.parametrize("behaviour", ["die", f"refuse-{errno.ESHUTDOWN}", "garbage"])
def test_what_changes_nothing_is_asked_again_of_another_worker(site: Site, behaviour: str) -> None:
    client = site.client()
    assert client.ask(protocol.Describe(f"{behaviour}.once"), Image).size == 512
    assert site.asked == [f"Describe {behaviour}.once"] * 2


@pytest.mark.parametrize("behaviour", ["die", f"refuse-{errno.ESHUTDOWN}", "garbage", f"refuse-{errno.ETIMEDOUT}"])
def test_a_change_whose_outcome_is_unknown_is_not_asked_for_twice(site: Site, behaviour: str) -> None:
    client = site.client()
    before = workers()
    with pytest.raises(errors.StorageUnreachable):
        client.ask(protocol.RollBack(f"{behaviour}.once", "label"), None)
    assert site.asked == [f"RollBack {behaviour}.once"]
    assert workers() == before, "whoever failed so is not used again"


@pytest.mark.parametrize("behaviour", ["die", f"refuse-{errno.ESHUTDOWN}", "garbage"])
def test_a_failure_that_repeats_itself_is_reported(site: Site, behaviour: str) -> None:
    with pytest.raises(errors.StorageUnreachable) as failure:
        site.client().ask(protocol.Describe(behaviour), Image)
    if behaviour == "die":
        assert "the last words of a worker" in failure.value.details


def test_a_worker_that_was_killed_while_it_had_nothing_to_do_is_replaced(site: Site) -> None:
    before = workers()
    client = site.ready(LONG)
    (worker,) = workers() - before
    os.kill(worker, 9)
    os.waitid(os.P_PID, worker, os.WEXITED | os.WNOWAIT)
    client.ask(protocol.Grow("disk", 1), None)
    assert site.asked == ["Names ", "Grow disk"]


def test_after_a_fence_only_workers_that_know_of_it_are_used(site: Site) -> None:
    """Another one's map of the cluster may be older: what it writes would not keep the fenced guest from writing after it."""
    before = workers()
    client = site.ready(LONG)
    with client._worker(time.monotonic() + 30) as busy:
        with client._worker(time.monotonic() + 30) as idle:
            client.ask(protocol.Names(), list[str])
            idle.usable = True
        assert len(workers() - before) == 3
        client.ask(protocol.Blocklist(["192.0.2.1:0/1"], 60), None)
        busy.usable = True
    (left,) = workers() - before
    client.ask(protocol.RollBack("disk", "label"), None)
    assert workers() - before == {left}


def test_a_refusal_is_no_reason_for_another_worker(site: Site) -> None:
    client = site.ready(LONG)
    before = workers()
    with pytest.raises(Refused) as refused:
        client.ask(protocol.Remove(f"refuse-{errno.EBUSY}"), None)
    assert refused.value.number == errno.EBUSY
    assert workers() == before


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOENT, errors.GuestFailed),
        (errno.EBUSY, errors.GuestFailed),
        (errno.ENOSPC, errors.GuestFailed),
        (errno.EPERM, errors.Misconfigured),
        (errno.EIO, errors.StorageUnreachable),
        (errno.ETIMEDOUT, errors.StorageUnreachable),
        (errno.ESHUTDOWN, errors.StorageUnreachable),
    ],
)
def test_users_read_no_addresses_and_no_paths_of_ceph(
    site: Site, number: int, error: type[errors.CausewayError]
) -> None:
    """Bug 1926978."""
    store = RbdStore(site.client())
    with pytest.raises(error) as failure:
        store.grow(f"refuse-{number}", 1)
    assert "192.0.2.1" in failure.value.details
    for secret in ("192.0.2.1", "vms", str(site.asked_file), "client."):
        assert secret not in failure.value.message


@pytest.mark.parametrize(
    ("user", "error"),
    [
        ("silent", errors.StorageUnreachable),
        ("crash", errors.StorageUnreachable),
        ("garbage", errors.StorageUnreachable),
        (f"refuse-{errno.ETIMEDOUT}", errors.StorageUnreachable),
        (f"refuse-{errno.ENOENT}", errors.Misconfigured),
        (f"refuse-{errno.EACCES}", errors.Misconfigured),
    ],
)
def test_a_worker_that_does_not_get_ready_ends_and_is_reported(
    site: Site, user: str, error: type[errors.CausewayError]
) -> None:
    before = workers()
    client = site.client(Limits(start=1 if user == "silent" else 30, read=30, write=30, whole_disk=30), user)
    with pytest.raises(error) as failure:
        client.ask(protocol.Names(), list[str])
    assert workers() == before
    assert str(site.asked_file) in failure.value.details
    assert str(site.asked_file) not in failure.value.message


def test_a_client_that_was_closed_has_no_workers(site: Site) -> None:
    before = workers()
    client = site.ready(LONG)
    client.close()
    assert workers() == before
    client.ask(protocol.Names(), list[str])
    assert workers() == before


def test_a_worker_that_can_t_be_started_is_reported(site: Site) -> None:
    client = RbdClient(site.client().access, LONG, ("/nonexistent/worker",))
    with pytest.raises(errors.StorageUnreachable, match="can't be reached from the host"):
        client.ask(protocol.Names(), list[str])


# what follows is the real worker, on a host without a Ceph


@pytest.mark.parametrize("conf", ["missing", "folder"])
def test_a_missing_configuration_is_reported_with_what_to_do(tmp_path: Path, conf: str) -> None:
    (tmp_path / "folder").mkdir()
    store = RbdStore.at("vms", conf=str(tmp_path / conf), user="compute")
    with pytest.raises(errors.Misconfigured) as failure:
        store.find("disk")
    assert f"Look whether {tmp_path / conf} and the keyring of client.compute" in failure.value.details


def test_a_host_without_bindings_and_programs_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ceph.conf").touch()
    access = Access(str(tmp_path / "ceph.conf"), "compute", "vms", 5, 5, programs=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(errors.Misconfigured) as failure:
        RbdClient(access, LONG).ask(protocol.Names(), list[str])
    assert "python3-rados and python3-rbd, or ceph-common" in failure.value.details


def test_a_worker_and_its_programs_end_with_the_compute(tmp_path: Path) -> None:
    (tmp_path / "ceph.conf").touch()
    os.mkfifo(tmp_path / "open")
    program = tmp_path / "ceph"
    # It has the other end of a pipe open for as long as it lives.
    program.write_text(f"#!/bin/sh\nexec 3>{tmp_path}/open\necho >&3\nexec sleep 1000\n")
    program.chmod(0o755)
    access = Access(str(tmp_path / "ceph.conf"), "compute", "vms", 500, 500, programs=True)
    worker = subprocess.Popen(
        [sys.executable, "-m", "causeway.virt.libvirt.storage.rbd.worker", msgspec.json.encode(access).decode()],
        stdin=subprocess.PIPE,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )
    with (tmp_path / "open").open("rb") as pipe:
        assert pipe.readline() == b"\n"
        assert worker.stdin is not None
        worker.stdin.close()
        assert pipe.read() == b"", "the program has ended"
    assert worker.wait(60) == -9

"""Whether Nova or Causeway owns a host: never both, and either can continue wherever a process died."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from causeway import durable, errors
from causeway.compute.adopting import nova_processes
from causeway.compute.adopting.ownership import HELD, IDENTITY, Ownership
from causeway.compute.upkeep.report import node_uuid

NODE, OTHER = "6f1c2f7e-7c0b-4a51-a6e4-2d1a4a9a3f10", "00000000-1111-4222-8333-444444444444"
CHANGES = ("write", "rename", "delete", "delete_tree")


class Killed(BaseException):
    """The process ends here."""


def nobody_runs() -> None:
    """What a take asks."""


class Host:
    """The folders of a host that Nova had: its state, and its configuration with a second file."""

    def __init__(self, path: Path, *, both: bool = True) -> None:
        self.state, self.nova, self.etc = path / "state", path / "nova", path / "etc"
        for folder in (self.state, self.nova, self.etc):
            folder.mkdir(parents=True, exist_ok=True)
        self.files = [self.nova / IDENTITY, *([self.etc / IDENTITY] if both else [])]
        for file in self.files:
            file.write_text(f"{NODE}\n")

    def ownership(self) -> Ownership:
        """As a process has it that has just started."""
        return Ownership(self.state, [self.nova, self.etc, self.nova])

    @property
    def nova_may_start(self) -> bool:
        return any(file.exists() for file in self.files)

    @property
    def is_novas(self) -> bool:
        return all(file.exists() for file in self.files) and not self.ownership().is_taken

    @property
    def is_ours(self) -> bool:
        return self.ownership().is_taken and not self.nova_may_start


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def dying_at(number: int, work: Callable[[], None], *, done: bool) -> bool:
    """Whether the work came to its change of this number, at which the process dies: before it, or when it is ``done``."""
    count = 0

    def watched(change: Callable[..., object]) -> Callable[..., object]:
        def run(*given: object, **named: object) -> object:
            nonlocal count
            count += 1
            if count == number and not done:
                raise Killed
            found = change(*given, **named)
            if count == number:
                raise Killed
            return found

        return run

    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGES:
            patch.setattr(durable, name, watched(getattr(durable, name)))
        try:
            work()
        except Killed:
            return True
    return False


POINTS = [(number, done) for number in range(1, 7) for done in (False, True)]


def test_a_taken_host_has_its_identity_and_a_released_one_is_as_it_was(host: Host) -> None:
    assert host.is_novas
    host.ownership().take(NODE, nobody_runs)
    assert host.is_ours and (host.nova / HELD).read_text() == f"{NODE}\n"
    assert node_uuid(host.state, lambda: None, lived=True) == NODE
    assert [each.is_held for each in host.ownership().identities()] == [True, True]
    host.ownership().release()
    assert host.is_novas and not (host.nova / HELD).exists() and not (host.etc / HELD).exists()


def test_takes_and_releases_may_be_repeated(host: Host) -> None:
    for _ in range(2):
        for _again in range(2):
            host.ownership().take(NODE, nobody_runs)
            assert host.is_ours
        for _again in range(2):
            host.ownership().release()
            assert host.is_novas


@pytest.mark.parametrize(("number", "done"), POINTS)
def test_a_take_that_dies_anywhere_leaves_one_owner_at_most_and_either_can_continue(
    tmp_path: Path, number: int, done: bool
) -> None:
    for end in ("take", "release"):
        host = Host(tmp_path / end)
        died = dying_at(number, partial(host.ownership().take, NODE, nobody_runs), done=done)
        assert died is (number <= 4)
        assert not (host.nova_may_start and host.ownership().is_taken)
        if end == "take":
            host.ownership().take(NODE, nobody_runs)
            assert host.is_ours
        else:
            host.ownership().release()
            assert host.is_novas


@pytest.mark.parametrize(("number", "done"), POINTS)
def test_a_release_that_dies_anywhere_leaves_one_owner_at_most_and_either_can_continue(
    tmp_path: Path, number: int, done: bool
) -> None:
    for end in ("take", "release"):
        host = Host(tmp_path / end)
        host.ownership().take(NODE, nobody_runs)
        died = dying_at(number, host.ownership().release, done=done)
        assert died is (number <= 4)
        assert not (host.nova_may_start and host.ownership().is_taken)
        if end == "take":
            host.ownership().take(NODE, nobody_runs)
            assert host.is_ours
        else:
            host.ownership().release()
            assert host.is_novas


def test_a_nova_compute_that_was_started_at_the_last_moment_keeps_its_host(host: Host) -> None:
    def is_seen() -> None:
        assert not host.nova_may_start
        raise errors.Conflict("A nova-compute runs on the host.")

    with pytest.raises(errors.Conflict, match="runs"):
        host.ownership().take(NODE, is_seen)
    assert host.is_novas


@pytest.mark.parametrize("content", [OTHER, "", "no uuid", "\xff"])
def test_a_host_that_is_another_node_is_not_taken(host: Host, content: str) -> None:
    (host.etc / IDENTITY).write_text(content)
    with pytest.raises(errors.Conflict, match="not node") as refused:
        host.ownership().take(NODE, nobody_runs)
    assert str(host.etc / IDENTITY) in refused.value.details
    assert host.is_novas and (host.etc / IDENTITY).read_text() == content and not list(host.state.iterdir())


def test_a_host_without_an_identity_is_not_taken(tmp_path: Path) -> None:
    host = Host(tmp_path, both=False)
    (host.nova / IDENTITY).unlink()
    with pytest.raises(errors.Conflict, match="not node"):
        host.ownership().take(NODE, nobody_runs)
    assert not host.ownership().is_taken


def test_a_host_that_was_another_node_of_ours_is_not_taken(host: Host) -> None:
    (host.state / IDENTITY).write_text(OTHER)
    with pytest.raises(errors.Conflict, match="before") as refused:
        host.ownership().take(NODE, nobody_runs)
    assert OTHER in refused.value.details and host.is_novas


def test_an_identity_that_somebody_wrote_anew_is_put_aside_when_the_owner_starts(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    host.ownership().take(NODE, nobody_runs)
    (host.nova / IDENTITY).write_text(NODE)
    host.ownership().hold_again()
    assert host.is_ours and "anew" in caplog.text
    (host.nova / IDENTITY).write_text(OTHER)
    with pytest.raises(errors.Conflict):
        host.ownership().hold_again()
    with pytest.raises(errors.Conflict, match="differ"):
        host.ownership().release()
    assert host.ownership().is_taken and (host.nova / HELD).exists()


def test_a_release_discards_what_servers_held_since_nova_may_change_it(host: Host) -> None:
    host.ownership().take(NODE, nobody_runs)
    (host.state / "claims").mkdir()
    host.ownership().release()
    assert not (host.state / "claims").exists()


# processes


def process(proc: Path, pid: int, words: list[str], **spaces: str) -> None:
    folder = proc / str(pid)
    (folder / "ns").mkdir(parents=True)
    (folder / "cmdline").write_bytes(b"\0".join(word.encode() for word in words) + b"\0")
    for name, number in {"net": "net:[1]", "mnt": "mnt:[1]", **spaces}.items():
        (folder / "ns" / name).symlink_to(number)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    process(tmp_path, 1, ["/sbin/init"])
    (tmp_path / "self").symlink_to("1")
    (tmp_path / "meminfo").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["/usr/bin/python3", "/usr/bin/nova-compute", "--config-file", "/etc/nova/nova.conf"],
        ["/opt/venv/bin/nova-compute"],
        ["nova-compute: waiting"],
        ["/usr/bin/python3", "-W", "ignore", "/opt/venv/bin/nova-compute"],
    ],
)
def test_a_nova_compute_is_found_however_it_was_started(proc: Path, words: list[str]) -> None:
    process(proc, 42, words)
    (found,) = nova_processes.find(proc)
    assert (found.pid, found.command) == (42, " ".join(words))


@pytest.mark.parametrize(
    "words",
    [
        ["/usr/bin/qemu-system-x86_64", "-name", "guest=nova-compute,debug-threads=on", "-S"],
        ["vi", "/etc/nova/nova-compute.conf"],
        ["/usr/bin/python3", "/usr/bin/nova-conductor", "--config-file", "x", "/usr/bin/nova-compute"],
        [],
    ],
)
def test_what_only_looks_like_one_is_not_found(proc: Path, words: list[str]) -> None:
    process(proc, 42, words)
    assert nova_processes.find(proc) == []


def test_one_in_a_container_of_this_host_is_found_and_one_of_another_host_of_the_machine_is_not(proc: Path) -> None:
    process(proc, 42, ["nova-compute"], mnt="mnt:[2]")
    process(proc, 43, ["nova-compute"], net="net:[2]", mnt="mnt:[3]")
    assert [found.pid for found in nova_processes.find(proc)] == [42]


def test_one_whose_namespaces_may_not_be_seen_counts(proc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process(proc, 42, ["nova-compute"], net="net:[2]", mnt="mnt:[2]")
    real = os.readlink

    def refuse(path: Path, **_named: object) -> str:
        if "42" in str(path):
            raise PermissionError(path)
        return real(path)

    monkeypatch.setattr(os, "readlink", refuse)
    assert [found.pid for found in nova_processes.find(proc)] == [42]


def test_the_processes_of_this_machine_can_be_read() -> None:
    assert isinstance(nova_processes.find(), list)

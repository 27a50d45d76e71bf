"""The disks of a real guest are copied while it runs, in rounds, and what is left is little when it is off."""

from __future__ import annotations

import os
import signal
import subprocess
import uuid as uuids
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import libvirt
import pytest

from causeway.compute.disks import changes
from causeway.compute.disks.copies import Copies
from causeway.compute.disks.rounds import Rounds
from causeway.errors import WarmCopyImpossible
from causeway.model.image import ImageMeta
from causeway.model.outcomes import OperationToken
from causeway.model.states import PowerState
from causeway.model.warm import CopiedDisk, CopyRound
from causeway.virt.driver import BaseImage, RootDisk
from causeway.virt.libvirt import power
from causeway.virt.libvirt.agent import Agent
from causeway.virt.libvirt.guest_xml import domain_xml
from tests.integration.libvirt.lab_guests import STOP_AGENT, Cloud, Guest
from tests.unit.compute.streams import Stream


@dataclass
class Warm:
    """A guest that is copied from its host to another one."""

    guest: Guest
    rounds: Rounds
    copies: Copies
    token: OperationToken

    def begin(self, since: int | None = None) -> CopyRound:
        return self.rounds.begin(self.token, self.guest.instance, ["disk"], since=since, flatten=False, url="")

    def receive(self, copied: CopyRound) -> int:
        @contextmanager
        def opened(disk: CopiedDisk, part: int) -> Iterator[changes.Source]:
            yield Stream(self.rounds.read_part(self.token.operation_id, copied.number, disk.name, part))

        self.copies.begin(self.token, self.guest.uuid, copied)
        return sum(
            self.copies.receive(self.token, copied, disk, opened, self.base_of, lambda *_: None)
            for disk in copied.disks
        )

    def base_of(self, _image_id: str) -> BaseImage:
        assert self.guest.base is not None
        return self.guest.base

    def complete(self, since: int) -> Path:
        export = self.rounds.changes_since(self.token.operation_id, "disk", since)
        path = self.copies.complete(self.token, "disk", export.path, self.base_of)
        assert path is not None
        return path


def domain(guest: Guest) -> Any:
    return guest.driver._connection.call("find it", lambda hypervisor: power.find(hypervisor, guest.uuid))


def disk(guest: Guest) -> Path:
    return guest.driver._disks.root(guest.uuid)


def bitmaps(path: Path) -> bool:
    said = subprocess.run(["qemu-img", "info", "-U", str(path)], check=True, stdout=subprocess.PIPE, text=True)
    return "bitmaps" in said.stdout


def assert_same(source: Path, copy: Path, base: Path) -> None:
    """``copy`` names no base by itself."""
    shown = subprocess.run(["qemu-img", "info", str(copy)], check=True, stdout=subprocess.PIPE, text=True).stdout
    assert "backing file" not in shown
    subprocess.run(["qemu-img", "rebase", "-u", "-F", "qcow2", "-b", str(base), str(copy)], check=True)
    subprocess.run(["qemu-img", "compare", "-q", str(source), str(copy)], check=True)
    subprocess.run(["qemu-img", "rebase", "-u", "-b", "", str(copy)], check=True)


@pytest.fixture(params=[({}, b"")])
def warm(request: pytest.FixtureRequest, cloud: Cloud, tmp_path: Path) -> Iterator[Warm]:
    """``params``: what its image says, and a script that it runs."""
    guest = cloud.guest()
    properties, script = request.param
    guest.instance.image_meta = ImageMeta("the-image", properties=properties)
    guest.config_drive = {"openstack/latest/user_data": script} if script else {}
    guest.spawn()
    target = cloud.guest(host=1)
    made = Warm(
        guest,
        Rounds(tmp_path / "rounds", guest.driver, lambda *_: None),
        Copies(tmp_path / "copies", target.driver),
        OperationToken(str(uuids.uuid4()), str(uuids.uuid4()), 1, "CopyWhileRunning"),
    )
    yield made
    made.rounds.discard(made.token.operation_id)


def write(guest: Guest) -> None:
    """Each boot writes to the disk; the guest's QEMU, and what it counts, live on."""
    boots = guest.console().boots
    domain(guest).reset()
    guest.wait_for_boot(boots + 1)


def limits(guest: Guest) -> dict[str, int]:
    found = domain(guest).blockIoTune("vda", libvirt.VIR_DOMAIN_AFFECT_LIVE)
    return {name: found[name] for name in ("total_bytes_sec", "read_bytes_sec", "write_bytes_sec", "write_iops_sec")}


@pytest.mark.parametrize(
    ("own", "limited"),
    [
        ({}, {"write_bytes_sec": 5_000_000}),
        ({"write_bytes_sec": 1_000_000, "write_iops_sec": 900}, {}),
        ({"write_bytes_sec": 9_000_000, "read_bytes_sec": 8_000_000}, {"write_bytes_sec": 5_000_000}),
        ({"total_bytes_sec": 9_000_000}, {"total_bytes_sec": 5_000_000}),
    ],
    ids=["none", "lower", "higher", "of all bytes"],
)
def test_a_guest_writes_less_for_a_while_and_then_as_its_flavor_says(
    warm: Warm, own: dict[str, int], limited: dict[str, int]
) -> None:
    """Of its definition, which is not changed."""
    guest = warm.guest
    for where in (libvirt.VIR_DOMAIN_AFFECT_CONFIG, libvirt.VIR_DOMAIN_AFFECT_LIVE) if own else ():
        domain(guest).setBlockIoTune("vda", own, where)
    before = limits(guest)
    warm.begin()
    warm.rounds.limit_writes(warm.token.operation_id, 5_000_000)
    assert limits(guest) == before | limited
    warm.rounds.end(warm.token.operation_id)
    assert limits(guest) == before
    warm.rounds.limit_writes(warm.token.operation_id, 5_000_000)
    guest.driver.power_off(guest.uuid, 30)
    # It is off, and so has no limit that could be lifted.
    warm.rounds.discard(warm.token.operation_id)


def test_the_copy_is_what_the_source_has_when_it_is_off_and_boots(warm: Warm, cloud: Cloud) -> None:
    guest = warm.guest
    marker = guest.console().last("CAUSEWAY-MARKER", disk="vda")
    first = warm.begin()
    whole = warm.receive(first)
    assert first.since is None
    write(guest)
    second = warm.begin(first.number)
    changed = warm.receive(second)
    assert second.since == first.number
    # A boot writes to few blocks, and the guest has booted once before the first round.
    assert 0 < changed <= whole
    assert guest.driver.inspect(guest.uuid).power_state == PowerState.RUNNING
    write(guest)
    warm.rounds.end(warm.token.operation_id)
    guest.driver.power_off(guest.uuid, 30)
    copy = warm.complete(second.number)
    assert guest.base is not None
    assert_same(disk(guest), copy, guest.base.path)
    warm.rounds.discard(warm.token.operation_id)
    assert not bitmaps(disk(guest))

    other = cloud.guest(host=1)
    spec = other.spec(RootDisk(guest.base, "the-image", snapshot=copy, size_gb=1))
    other.driver.adopt_disks(spec)
    assert not copy.exists()
    spec.root_disk = None
    other.driver.spawn(spec)
    assert other.wait_for_boot().last("CAUSEWAY-MARKER", disk="vda")["first"] == marker["first"]


def test_what_the_base_image_has_does_not_travel(warm: Warm) -> None:
    sent = warm.receive(warm.begin())
    allocated = disk(warm.guest).stat().st_blocks * 512
    assert sent <= allocated


def test_a_killed_hypervisor_costs_a_full_round_and_nothing_else(warm: Warm) -> None:
    guest = warm.guest
    first = warm.begin()
    warm.receive(first)
    pid = int(
        subprocess.run(["pgrep", "-f", f"uuid {guest.uuid}"], check=True, stdout=subprocess.PIPE).stdout.split()[0]
    )
    os.kill(pid, signal.SIGKILL)
    guest.wait(lambda _said: guest.driver.inspect(guest.uuid).power_state != PowerState.RUNNING)
    with pytest.raises(WarmCopyImpossible):
        warm.begin(first.number)
    with pytest.raises(WarmCopyImpossible):
        warm.rounds.changes_since(warm.token.operation_id, "disk", first.number)
    assert guest.driver.power_on(guest.spec()) == PowerState.RUNNING
    again = warm.begin(first.number)
    assert again.since is None
    warm.receive(again)
    warm.rounds.end(warm.token.operation_id)
    guest.driver.power_off(guest.uuid, 30)
    copy = warm.complete(again.number)
    assert guest.base is not None
    assert_same(disk(guest), copy, guest.base.path)


def test_a_guest_that_its_user_shuts_down_needs_only_what_changed(warm: Warm) -> None:
    guest = warm.guest
    first = warm.begin()
    warm.receive(first)
    write(guest)
    guest.driver.power_off(guest.uuid, 30)
    with pytest.raises(WarmCopyImpossible):
        warm.begin(first.number)
    copy = warm.complete(first.number)
    assert guest.base is not None
    assert_same(disk(guest), copy, guest.base.path)


def test_a_round_outlives_the_process_that_began_it(warm: Warm) -> None:
    guest = warm.guest
    first = warm.begin()
    warm.rounds = Rounds(warm.rounds._directory, guest.driver, lambda *_: None)
    again = warm.begin()
    assert again.number == first.number
    warm.receive(again)


def test_nothing_stays_at_the_source_when_it_is_abandoned(warm: Warm) -> None:
    guest = warm.guest
    first = warm.begin()
    warm.receive(first)
    warm.begin(first.number)
    warm.rounds.discard(warm.token.operation_id)
    assert domain(guest).listAllCheckpoints() == []
    assert guest.driver._rounds._job(guest.uuid) is None
    assert not list(guest.driver._disks.directory.glob(f"scratch-{guest.uuid}*"))
    guest.driver.power_off(guest.uuid, 30)
    assert not bitmaps(disk(guest))


WITH_AGENT = {"hw_qemu_guest_agent": "yes"}


def frozen(guest: Guest) -> list[str]:
    """What the agent in the guest was asked."""
    said = guest.console().text
    return [line.split()[1] for line in said.splitlines() if line.startswith("CAUSEWAY-AGENT ")]


def agent_listens(guest: Guest) -> bool:
    return domain_xml.agent_listens(domain(guest).XMLDesc())


@pytest.mark.parametrize("warm", [(WITH_AGENT, b"")], indirect=True)
def test_the_agent_keeps_the_file_systems_still_when_a_later_round_begins(warm: Warm) -> None:
    guest = warm.guest
    guest.wait(lambda _said: agent_listens(guest))
    first = warm.begin()
    warm.receive(first)
    assert frozen(guest) == []
    second = warm.begin(first.number)
    warm.receive(second)
    guest.wait(lambda _said: frozen(guest) == ["frozen", "thawed"])
    assert not list(guest.driver._disks.directory.glob("frozen-*"))
    # It lives on, and goes off when it is asked to.
    warm.rounds.end(warm.token.operation_id)
    guest.driver.power_off(guest.uuid, 30)
    assert "CAUSEWAY-SHUTDOWN" in guest.console().text
    copy = warm.complete(second.number)
    assert guest.base is not None
    assert_same(disk(guest), copy, guest.base.path)


@pytest.mark.parametrize("warm", [(WITH_AGENT, b"")], indirect=True)
def test_what_was_frozen_by_a_process_that_died_is_thawed_by_the_next_one(warm: Warm) -> None:
    guest = warm.guest
    guest.wait(lambda _said: agent_listens(guest))
    assert guest.driver._rounds._agent._freeze(guest.uuid) == ""
    Agent(guest.driver._connection, guest.driver._disks.directory).thaw_all()
    guest.wait(lambda _said: frozen(guest) == ["frozen", "thawed"])
    assert not list(guest.driver._disks.directory.glob("frozen-*"))


@pytest.mark.parametrize("warm", [(WITH_AGENT, STOP_AGENT)], indirect=True)
def test_an_agent_that_does_not_answer_is_done_without(warm: Warm) -> None:
    guest = warm.guest
    guest.wait(lambda said: "CAUSEWAY-MUTE" in said.text and agent_listens(guest))
    first = warm.begin()
    warm.receive(first)
    second = warm.begin(first.number)
    assert second.since == first.number
    warm.receive(second)
    assert frozen(guest) == []
    # Nobody knows whether it has frozen something: that is tried to be thawed until the move has ended.
    assert list(guest.driver._disks.directory.glob("frozen-*"))
    warm.rounds.discard(warm.token.operation_id)
    assert not list(guest.driver._disks.directory.glob("frozen-*"))


def test_an_agent_that_is_not_there_hinders_nobody_but_who_requires_it(warm: Warm) -> None:
    guest = warm.guest
    first = warm.begin()
    warm.receive(first)
    # The guest was started without a channel.
    meta = guest.instance.image_meta
    assert meta is not None
    meta.properties = dict(WITH_AGENT)
    second = warm.begin(first.number)
    assert second.since == first.number
    warm.receive(second)
    meta.properties = WITH_AGENT | {"os_require_quiesce": "yes"}
    warm.rounds.discard(warm.token.operation_id)
    first = warm.begin()
    warm.receive(first)
    with pytest.raises(WarmCopyImpossible, match="can't be kept still"):
        warm.begin(first.number)

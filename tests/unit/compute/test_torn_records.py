"""Records of a host that can't be read: of moves, claims, offers, the port of the disk server, the host's identity, guests."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from causeway import durable, errors
from causeway.compute.disks.disk_offers import DiskOffers
from causeway.compute.disks.disk_server import DiskServer
from causeway.compute.disks.rounds import Rounds
from causeway.compute.host.claims import Claims
from causeway.compute.host.fence import UNDONE_BY, Fence
from causeway.compute.upkeep.report import node_uuid
from causeway.hardware.fit import Limits
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance, MigrationContext
from causeway.model.numa import InstanceNUMACell, InstanceNUMATopology, NUMACell, NUMATopology
from causeway.model.outcomes import OperationToken
from causeway.virt.libvirt.storage.disks import InstanceDisks
from causeway.virt.simulated import SimulatedDriver

DAMAGES: dict[str, bytes] = {"empty": b"", "truncated": b'{"epoch": 1, "outco', "garbage": b"\xff\x00\x17"}
damaged = pytest.mark.parametrize("content", DAMAGES.values(), ids=DAMAGES)
SERVER = str(uuid.uuid4())
MOVE = str(uuid.uuid4())


def torn(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def check_kept(path: Path, content: bytes, log: str) -> None:
    assert path.with_name(f"{path.name}.torn").read_bytes() == content
    assert str(path) in log


# records of moves


class Journal:
    """What the conductor says of a move."""

    def __init__(self, epoch: int = 1, *, undoing: bool = False) -> None:
        self.epoch = epoch
        self.undoing = undoing

    def __call__(self, token: OperationToken, forward: bool) -> None:
        if token.epoch != self.epoch or (forward and self.undoing):
            raise errors.TakenOver("late")


def order(fence: Fence, method: str, epoch: int, done: list[str]) -> None:
    fence.once(OperationToken(MOVE, "migration", epoch, "Step"), method, type(None), lambda: done.append(method))


@damaged
def test_a_torn_record_of_a_move_does_not_keep_it_stuck(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path, done = torn(tmp_path / f"{MOVE}.json", content), list[Any]()
    order(Fence(tmp_path, "host1", Journal(3)), "finish_snapshot_based_resize_at_dest", 3, done)
    check_kept(path, content, caplog.text)
    # From here on it is as ever.
    order(Fence(tmp_path, "host1", Journal(3)), "finish_snapshot_based_resize_at_dest", 3, done)
    assert done == ["finish_snapshot_based_resize_at_dest"]


@damaged
@pytest.mark.parametrize("method", UNDONE_BY)
def test_an_order_that_comes_late_does_not_take_effect_because_the_record_is_torn(
    tmp_path: Path, content: bytes, method: str
) -> None:
    torn(tmp_path / f"{MOVE}.json", content)
    done: list[str] = []
    with pytest.raises(errors.TakenOver):
        order(Fence(tmp_path, "host1", Journal(2)), method, 1, done)
    with pytest.raises(errors.TakenOver):
        # Of the same epoch, and undone meanwhile. The host was started again: it still does not know.
        order(Fence(tmp_path, "host1", Journal(1, undoing=True)), method, 1, done)
    order(Fence(tmp_path, "host1", Journal(1, undoing=True)), UNDONE_BY[method][0], 1, done)
    assert done == [UNDONE_BY[method][0]]
    with pytest.raises(errors.ClaimRefused):
        order(Fence(tmp_path, "host1", Journal(1)), method, 1, done)


def test_nothing_is_done_while_there_is_nobody_to_ask(tmp_path: Path) -> None:
    def away(_token: OperationToken, _forward: bool) -> None:
        raise errors.RpcTimeout("check_order", "cell_conductor", 10.0)

    torn(tmp_path / f"{MOVE}.json", b"")
    done: list[str] = []
    for _again in range(2):
        with pytest.raises(errors.RpcTimeout):
            order(Fence(tmp_path, "host1", away), "finish_snapshot_based_resize_at_dest", 1, done)
    assert done == []
    order(Fence(tmp_path, "host1", Journal()), "finish_snapshot_based_resize_at_dest", 1, done)
    assert done == ["finish_snapshot_based_resize_at_dest"]


# claims


def claims_in(directory: Path) -> Claims:
    claims = Claims(directory, "host1", limits=Limits(1.0, 1.0))
    claims.load(None, [])
    return claims


@damaged
def test_a_torn_claim_is_asked_for_and_nobody_is_given_anything_before(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path = torn(tmp_path / f"{SERVER}.json", content)
    assert claims_in(tmp_path).torn() == [SERVER]
    check_kept(path, content, caplog.text)
    # The next start knows of them, too.
    claims = claims_in(tmp_path)
    assert claims.torn() == [SERVER]
    with pytest.raises(errors.ClaimRefused, match="does not know at present"):
        claims._try(None, None)  # type: ignore[arg-type]
    claims.restore(SERVER, [])
    assert claims.torn() == [] and claims_in(tmp_path).torn() == []


PINNED = InstanceNUMATopology([InstanceNUMACell(0, [], [0], 128, cpu_policy="dedicated", cpu_pinning_raw={"0": 4})])
MIGRATION = "migration"


def cpus_of(directory: Path) -> Claims:
    """The claims of a host with one NUMA cell of two CPUs for pinned guests."""
    claims = Claims(directory, "host1", limits=Limits(1.0, 1.0))
    claims.load(NUMATopology([NUMACell(0, [], [4, 5], 1024)]), [])
    return claims


def server(**fields: Any) -> Instance:
    flavor = Flavor("pinned", "pinned", vcpus=1, memory_mb=128, root_gb=1)
    return Instance(fields.pop("uuid", SERVER), "project", "user", "server", flavor, **fields)


def moving(promised: InstanceNUMATopology | None, dest_host: str = "host1") -> Instance:
    """A server as the target is ordered to make its guest."""
    return server(migration_context=MigrationContext(MIGRATION, new_numa_topology=promised, dest_host=dest_host))


def test_no_guest_is_made_while_it_is_not_known_what_it_holds(tmp_path: Path) -> None:
    torn(tmp_path / f"{SERVER}.json", b"")
    claims = cpus_of(tmp_path)
    with pytest.raises(errors.ClaimsUnknown) as refusal:
        claims.use(moving(PINNED), MIGRATION)
    assert refusal.value.passing
    claims.restore(SERVER, [(server(numa_topology=PINNED), MIGRATION)])
    assert claims.use(moving(PINNED), MIGRATION).numa_topology == PINNED


def test_the_record_that_does_not_know_yet_makes_no_empty_claim(tmp_path: Path) -> None:
    """The host was asked to claim, and what it promised was not written down yet."""
    torn(tmp_path / f"{SERVER}.json", b"")
    claims = cpus_of(tmp_path)
    claims.restore(SERVER, [(server(), MIGRATION)])
    assert claims.torn() == [] and claims.listed() == []
    assert claims.use(moving(PINNED), MIGRATION).numa_topology == PINNED
    assert [claim.migration_uuid for claim in cpus_of(tmp_path).listed()] == [MIGRATION]


def test_what_was_promised_and_given_to_others_is_refused(tmp_path: Path) -> None:
    claims = cpus_of(tmp_path)
    claims.adopt(server(uuid=str(uuid.uuid4()), numa_topology=PINNED), None)
    with pytest.raises(errors.ClaimRefused, match="held by others"):
        claims.use(moving(PINNED), MIGRATION)


@pytest.mark.parametrize(
    ("instance", "migration"),
    [
        (moving(None), MIGRATION),
        (moving(PINNED), "another migration"),
        (moving(PINNED), None),
        (moving(PINNED, "host2"), MIGRATION),
        (server(numa_topology=PINNED), MIGRATION),
    ],
    ids=["nothing", "another migration", "none", "another host", "no move"],
)
def test_who_was_promised_nothing_has_nothing(tmp_path: Path, instance: Instance, migration: str | None) -> None:
    claims = cpus_of(tmp_path)
    assert claims.use(instance, migration).numa_topology is None
    assert claims.listed() == []


# offers, the disk server's port


@damaged
def test_a_torn_offer_is_none_and_made_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes) -> None:
    offers = DiskOffers(tmp_path)
    path = torn(tmp_path / f"{MOVE}.{SERVER}" / "manifest.json", content)
    assert offers.find(MOVE) is None
    check_kept(path, content, caplog.text)
    assert offers.make(MOVE, SERVER, [], lambda _name: None).disks == []  # type: ignore[arg-type, return-value]
    assert offers.find(MOVE) is not None


@pytest.mark.parametrize("content", [*DAMAGES.values(), b"99999999"], ids=[*DAMAGES, "no port"])
def test_a_torn_port_is_another_port(tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes) -> None:
    path = torn(tmp_path / "disk-server-port", content)
    rounds = Rounds(tmp_path / "rounds", SimulatedDriver("host", tmp_path / "hypervisor"), lambda _size: None)
    server = DiskServer(DiskOffers(tmp_path / "offers"), rounds, "127.0.0.1", 0, path)
    server.start()
    server.stop()
    check_kept(path, content, caplog.text)
    assert int(path.read_text()) > 0


# the host's identity


@damaged
def test_a_torn_identity_is_the_one_that_others_know(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path, known = torn(tmp_path / "compute_id", content), str(uuid.uuid4())
    assert node_uuid(tmp_path, lambda: known, lived=False) == known
    check_kept(path, content, caplog.text)
    assert node_uuid(tmp_path, lambda: None, lived=True) == known


@pytest.mark.parametrize("lived", [True, False])
def test_a_missing_identity_is_asked_for_only_by_a_host_that_has_lived(tmp_path: Path, lived: bool) -> None:
    known = str(uuid.uuid4())
    assert (node_uuid(tmp_path, lambda: known, lived=lived) == known) is lived


# guests


@damaged
def test_a_torn_guest_stops_neither_its_host_nor_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    path = torn(tmp_path / "guests" / f"{SERVER}.json", content)
    driver = SimulatedDriver("host1", tmp_path)
    driver.start()
    assert driver.list_guests() == {} and driver.running_anywhere(SERVER) == []
    check_kept(path, content, caplog.text)


@damaged
def test_torn_facts_of_a_disk_are_none(tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes) -> None:
    disks = InstanceDisks(tmp_path, 10)
    path = torn(disks.folder(SERVER) / "disk.info", content)
    assert disks._read_info(disks.folder(SERVER)) == {}
    check_kept(path, content, caplog.text)


def test_what_is_torn_again_is_kept_beside_what_was(tmp_path: Path) -> None:
    decode: Callable[[bytes], int] = int
    for content in (b"one", b"two"):
        with pytest.raises(durable.Torn):
            durable.read(torn(tmp_path / "number", content), decode)
    assert [(tmp_path / name).read_text() for name in ("number.torn", "number.torn.2")] == ["one", "two"]
    assert durable.read(tmp_path / "number", decode) is None

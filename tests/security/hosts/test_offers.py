"""What a source says of where its disks are, and how large: a target asks nowhere else, and stops where the flavor ends."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from causeway import errors
from causeway.compute.disks import bounds
from causeway.compute.handover import disk_transfer, offered_at
from causeway.context import admin_context
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.model.outcomes import DiskOffer, OfferedDisk, OperationToken, Snapshot
from causeway.model.warm import CopiedDisk
from causeway.virt.driver import KEPT_STATE, MEMORY
from tests.functional.servers.moves_cloud import Cloud
from tests.security.answers.lying import lying
from tests.security.journeys import HOST, built

CLOUD = {"overrides": {"moves": {"patience": 0.0, "whole_tries": 1}}}
MOVE, GIB = "11111111-aaaa-4aaa-8aaa-000000000000", 1 << 30
TOKEN = OperationToken(MOVE, MOVE, 1, "step")
FLAVOR = Flavor("f", "f", 1, 128, root_gb=1, ephemeral_gb=2, swap=64)
SERVER = Instance("22222222-aaaa-4aaa-8aaa-000000000000", "project", "user", "server", flavor=FLAVOR)


@pytest.mark.parametrize(
    "url",
    [
        f"http://127.0.0.1:4711/disks/{MOVE}",
        f"https://[fe80::1]:4711/disks/{MOVE}/disk",
        f"http://host1.example:4711/disks/{MOVE}/disk.eph0",
        f"http://10.0.0.1:4711/disks/{MOVE}/rounds/3/disk/17",
    ],
)
def test_where_hosts_offer_disks(url: str) -> None:
    assert offered_at.checked(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        f"file:///disks/{MOVE}",
        f"ftp://10.0.0.1:4711/disks/{MOVE}",
        "http://10.0.0.1:8778/resource_providers/1",
        f"http://10.0.0.1/disks/{MOVE}",
        f"http://10.0.0.1:70000/disks/{MOVE}",
        f"http://user:password@10.0.0.1:4711/disks/{MOVE}",
        f"http://10.0.0.1:4711/disks/{MOVE}/../../allocations/x",
        f"http://10.0.0.1:4711/disks/{MOVE}?x=y",
        f"http://10.0.0.1:4711/disks/{MOVE}#x",
        f"http://10.0.0.1:4711/disks/{MOVE}/disk/extra",
        f"http://10.0.0.1:4711/disks/{MOVE}\r\nHost: other",
        f"http://10.0.0.1:4711//disks/{MOVE}",
        "http://10.0.0.1:4711/disks/x",
    ],
)
def test_nobody_is_asked_anywhere_else(url: str) -> None:
    with pytest.raises(errors.DiskTransferFailed):
        offered_at.checked(url)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("disk", 2 * GIB),
        ("disk", -1),
        ("disk.eph0", 3 * GIB),
        ("disk.swap", GIB),
        (MEMORY, GIB),
        (KEPT_STATE, GIB),
        ("disk.config", 1),
        ("../disk", 1),
    ],
)
def test_what_is_too_large_or_none_of_the_servers_is_not_fetched(tmp_path: Path, name: str, size: int) -> None:
    host: Any = SimpleNamespace(
        conf=None,
        image_cache=SimpleNamespace(received=lambda *_which: pytest.fail("it was fetched")),
        clock=SimpleNamespace(monotonic=lambda: 0.0),
        stopping=None,
    )
    with pytest.raises(errors.DiskTransferFailed, match="too large"):
        bounds.check(SERVER, name, size)
    offer = DiskOffer(f"http://127.0.0.1:1/disks/{MOVE}", "secret", [OfferedDisk(name, "qcow2", size, "0" * 64)])
    with pytest.raises(errors.DiskTransferFailed, match="too large"):
        disk_transfer.fetch(host, admin_context(), TOKEN, SERVER, offer)
    host.image_cache = SimpleNamespace(received=lambda *_which: tmp_path / "file")
    with pytest.raises(errors.DiskTransferFailed, match="too large"):
        disk_transfer.download(
            host, admin_context(), TOKEN, SERVER, name, Snapshot(MOVE, "qcow2", size, sha256="0" * 64)
        )


@pytest.mark.parametrize(
    ("name", "size"), [("disk", GIB), ("disk.eph0", 2 * GIB), ("disk.swap", 64 << 20), (MEMORY, 130 << 20)]
)
def test_the_servers_own_disks_are_not_too_large(name: str, size: int) -> None:
    bounds.check(SERVER, name, size)


@pytest.mark.parametrize(
    "disk",
    [
        CopiedDisk("disk", 1 << 50, 4096, 0, 1),
        CopiedDisk("disk", GIB, 1, 0, 1),
        CopiedDisk("disk", GIB, 1 << 40, 0, 1),
        CopiedDisk("disk", GIB, 4096, 0, 1 << 40),
        CopiedDisk("disk", GIB, 4096, 0, -1),
        CopiedDisk("memory.x", GIB, 4096, 0, 1),
    ],
)
def test_a_copy_that_can_not_be_right_is_not_begun(disk: CopiedDisk) -> None:
    with pytest.raises(errors.DiskTransferFailed):
        bounds.check_copied(SERVER, disk)


@pytest.mark.parametrize("where", ["http://192.0.2.1:8778/disks/{move}", "http://127.0.0.2:80/disks/{move}"])
@pytest.mark.parametrize("method", ["begin_round", "prep_snapshot_based_resize_at_source"])
def test_an_offer_at_somebody_elses_address_goes_to_nobody(cloud: Cloud, method: str, where: str) -> None:
    server = cloud.wait(built(cloud), "ACTIVE")
    before = cloud.reality(server)

    def elsewhere(name: str, arguments: dict[str, Any], reply: dict[str, Any]) -> dict[str, Any]:
        if name == method and "result" in reply:
            found = reply["result"] if name == "begin_round" else reply["result"]["offer"]
            found["url"] = where.format(move=arguments["token"]["move_id"]) + (
                "/rounds" if name == "begin_round" else ""
            )
        return reply

    if method == "prep_snapshot_based_resize_at_source":
        cloud.without_rounds()
    with lying(cloud.embedded.computes[HOST], elsewhere):
        cloud.admin.compute.migrate_server(server.id)
        cloud.failed(server)
    cloud.settle()
    assert cloud.reality(server) == before
    assert "gave an answer that can't be right" in str([fault.message for fault in cloud.faults(server)])

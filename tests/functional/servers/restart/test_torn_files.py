"""The machine lost its power and files of hosts are torn: every host starts, says which, and continues from what others know."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from causeway.audit import audit_embedded
from causeway.embedded.cloud import EmbeddedCloud
from tests.functional.servers.moves_cloud import Cloud
from tests.functional.servers.pinned_cloud import OVERRIDES, held, pinned

pytestmark = pytest.mark.embedded("damages the files of a cloud that is stopped")

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _content: b"",
    "truncated": lambda content: content[: len(content) // 2],
    "garbage": lambda _content: b"\xff\x00\x17 {not: json",
}


def start(directory: Path) -> tuple[EmbeddedCloud, Cloud]:
    embedded = EmbeddedCloud(directory, port=0, cells=2, hosts_per_cell=1, overrides=OVERRIDES)
    embedded.start()
    return embedded, Cloud(embedded)


def records(state: Path) -> list[Path]:
    """Every record that hosts keep as a file but for guests'."""
    found = []
    for host in (state / "hosts").iterdir():
        found += [host / "compute_id", host / "disk-server-port"]
        found += [*(host / "claims").glob("*.json"), *(host / "moves").glob("*.json")]
    assert {path.parent.name for path in found} >= {"claims", "moves"}
    return found


def identities(cloud: Cloud) -> dict[str, str]:
    return {found.name: found.id for found in cloud.admin.compute.hypervisors()}


@pytest.mark.parametrize("damage", [*DAMAGES, "missing"])
@pytest.mark.expects_errors("is torn")
def test_hosts_start_and_continue(tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: str) -> None:
    embedded, cloud = start(tmp_path)
    try:
        flavor, larger = pinned(cloud, "pinned.1", 1, gen="1"), pinned(cloud, "pinned.2", 2, gen="2")
        server, other = cloud.boot(flavor=flavor), cloud.boot("other", flavor=pinned(cloud, "any.pinned", 1))
        cloud.resized(server, larger)
        before = identities(cloud)
        held_before = {host: held(cloud, host) for host in embedded.computes}
        where = cloud.show(other).compute_host
        embedded.stop()
        torn = [*records(tmp_path), tmp_path / "hosts" / where / "guests" / f"{other.id}.json"]
        if damage == "missing":
            # A claim that is missing was never there, as far as a host can know (the audit finds that); and a host of
            # whose state nothing is left may be another one with the same name.
            torn = [path for path in torn if path.parent.name != "claims" and path.name != "disk-server-port"]
        for path in torn:
            if damage == "missing":
                path.unlink()
            else:
                path.write_bytes(DAMAGES[damage](path.read_bytes()))
        with caplog.at_level(logging.ERROR):
            embedded, cloud = start(tmp_path)
        try:
            if damage != "missing":
                # Records of moves are read when an order comes; half a number is a number.
                unreported = {"moves", "disk-server-port"} if damage == "truncated" else {"moves"}
                reported = [path for path in torn if not {path.parent.name, path.name} & unreported]
                assert [path for path in reported if f"{path} is torn" not in caplog.text] == []
                assert [path for path in reported if not path.with_name(f"{path.name}.torn").exists()] == []
            assert identities(cloud) == before
            assert {host: held(cloud, host) for host in embedded.computes} == held_before
            assert cloud.confirmed(server).status == "ACTIVE"
            check_back(cloud, other)
            report = audit_embedded(embedded, pause=0.01)
            assert report.disagreements == []
        finally:
            embedded.stop()
    except BaseException:
        embedded.stop()
        raise


def check_back(cloud: Cloud, server: Any) -> None:
    """Its definition is lost with the file; its disks are not."""
    cloud.member.compute.reboot_server(server.id, "HARD")
    found = cloud.wait(server, "ACTIVE")
    assert cloud.driver(found.compute_host).guest_read(server.id) != []

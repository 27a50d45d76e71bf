"""Of the hosts that may have a server, those are preferred that share the storage of its disks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from tests.functional.servers.evacuate.test_evacuate import die, evacuate
from tests.functional.servers.shared_disks.shared_cloud import SharedCloud

pytestmark = pytest.mark.embedded("stops a compute service")

ONE, APART, OTHER = (f"cell1-host{number}" for number in (1, 2, 3))
OPTIONS: dict[str, Any] = {"simulated": {"shared_stores": {ONE: "pool", OTHER: "pool"}}}


@pytest.fixture
def cloud(tmp_path: Path, put_state: Callable[[Path, int, int], None]) -> Iterator[SharedCloud]:
    put_state(tmp_path, 1, 3)
    embedded = EmbeddedCloud(tmp_path, port=0, cells=1, hosts_per_cell=3, overrides=OPTIONS)
    embedded.start()
    yield SharedCloud(embedded)
    for service in embedded.computes.values():
        service.stop()
    embedded.stop()


def test_a_server_goes_where_its_disks_are_although_another_host_has_more_room(cloud: SharedCloud) -> None:
    by_host = {cloud.host_of(each): each for each in (cloud.boot(f"server{number}") for number in range(3))}
    assert by_host.keys() == {ONE, APART, OTHER}
    cloud.member.compute.delete_server(by_host[APART])
    cloud.member.compute.wait_for_delete(by_host[APART])
    server = by_host[ONE]
    cloud.admin.compute.migrate_server(server)
    cloud.wait(server, "VERIFY_RESIZE")
    cloud.settle()
    assert cloud.host_of(server) == OTHER
    cloud.confirmed(server)
    cloud.settle()
    assert cloud.bytes_moved(server) == 0

    cloud.write(server, "its own")
    die(cloud, OTHER)
    answer = evacuate(cloud, server)
    assert answer.status_code == 200, answer.text
    cloud.wait(server, "ACTIVE")
    cloud.settle()
    assert cloud.host_of(server) == ONE and "its own" in cloud.read(server)

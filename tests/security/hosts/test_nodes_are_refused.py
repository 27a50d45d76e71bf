"""A host reports the node or the name of another host to a conductor that sees all cells: it is refused at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway import errors
from causeway.store.api import cells
from causeway.store.cell import hosts
from tests.functional.servers.moves_cloud import Cloud
from tests.security.hosts.impostor import VICTIM, delete_records, report, victim_node

ROGUE = "rogue"


@pytest.fixture(autouse=True)
def without_rogue(cloud: Cloud) -> Iterator[None]:
    yield
    for host in (ROGUE, VICTIM):
        delete_records(cloud, "cell2", host)
    cells.unmap_host(cloud.parts.api_database, ROGUE)


@pytest.mark.parametrize("lie", ["its node", "its name"])
def test_nothing_of_it_is_recorded(cloud: Cloud, lie: str, caplog: pytest.LogCaptureFixture) -> None:
    host = ROGUE if lie == "its node" else VICTIM
    given: dict[str, Any] = {"uuid": victim_node(cloud).uuid} if lie == "its node" else {}
    for _again in range(3):
        with pytest.raises(errors.Conflict, match=VICTIM):
            report(cloud, "cell2", host, **given)
    database = cloud.cell("cell2")
    assert hosts.list_nodes(database, host=host) == [] and hosts.list_services(database, host=host) == []
    (line,) = (record.message for record in caplog.records if record.levelname == "ERROR")
    assert VICTIM in line


def test_a_host_of_its_own_is_recorded_with_its_node(cloud: Cloud) -> None:
    sent = report(cloud, "cell2", ROGUE)
    mapping = cells.find_host(cloud.parts.api_database, ROGUE)
    assert mapping is not None and mapping.node_uuid == sent.node.uuid


def test_a_host_that_comes_back_after_its_service_was_deleted_is_mapped_again(cloud: Cloud) -> None:
    sent = report(cloud, "cell2", ROGUE)
    (service,) = hosts.list_services(cloud.cell("cell2"), host=ROGUE)
    cloud.admin.compute.delete_service(service.uuid)
    assert cells.find_host(cloud.parts.api_database, ROGUE) is None
    report(cloud, "cell2", ROGUE, uuid=sent.node.uuid)
    mapping = cells.find_host(cloud.parts.api_database, ROGUE)
    assert mapping is not None and mapping.node_uuid == sent.node.uuid

"""A host's report of its node changes no other host's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from causeway import errors
from causeway.model.host import ComputeNode
from causeway.store.cell import hosts
from causeway.store.database import Database

NODE = ComputeNode("11111111-1111-1111-1111-111111111111", "host1", "node1", "QEMU", 1, 4, 4096, 40)


def test_a_report_replaces_the_one_before(database: Database) -> None:
    hosts.check_node(database, NODE)
    assert hosts.save_node(database, NODE)
    hosts.check_node(database, NODE)
    assert not hosts.save_node(database, replace(NODE, vcpus=8))
    assert [node.vcpus for node in hosts.list_nodes(database)] == [8]


@pytest.mark.parametrize(
    "claimed",
    [
        replace(NODE, host="host2"),
        replace(NODE, uuid=NODE.uuid.replace("1", "2")),
        replace(NODE, uuid=NODE.uuid.replace("1", "2"), hypervisor_hostname="node2"),
    ],
    ids=["its uuid", "its name", "another node of its host"],
)
def test_a_node_of_another_host_is_not_reported_over(database: Database, claimed: ComputeNode) -> None:
    hosts.save_node(database, NODE)
    for record in (hosts.check_node, hosts.save_node):
        with pytest.raises(errors.Conflict, match=claimed.host):
            record(database, claimed)
    assert [(node.host, node.uuid) for node in hosts.list_nodes(database)] == [("host1", NODE.uuid)]

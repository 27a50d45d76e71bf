"""Hosts are handed back to the real Nova, with a server that moved to another cell while they were Causeway's."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import openstack.exceptions
import pytest

from tests.functional.processes.own_process import until
from tests.integration.adopt import outside
from tests.integration.adopt.adopted_cloud import adopted_cloud
from tests.integration.adopt.answers import PATIENCE, await_status, known
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.population import Populator

pytestmark = pytest.mark.timeout(1800)


def test_a_server_that_moved_to_another_cell_is_novas_again_where_it_is(cloud: NovaCloud, populator: Populator) -> None:
    made = populator.populate(["datavol"])
    uuid = made.servers["datavol"]
    volume = outside.volume_file(cloud, made.volumes["datavol"])
    content, lines = outside.digest(volume), outside.ticks(cloud, uuid)[-1].lines
    with adopted_cloud(cloud, "back") as adopted, closing(cloud.nova.connection()) as theirs:
        ours = adopted.admin
        adopted.take(*cloud.nova.hosts)
        ours.compute.resize_server(uuid, "gen2.small")
        await_status(ours, uuid, "VERIFY_RESIZE")
        ours.compute.confirm_server_resize(uuid)
        host = await_status(ours, uuid, "ACTIVE").compute_host
        assert cloud.nova.hosts[host] == "cell2"
        ours.compute.set_server_metadata(uuid, moved="yes")
        lines = outside.await_lines(cloud, uuid, lines).lines
        guests, said = outside.guests(cloud), known(ours, uuid)

        report = adopted.hand_back(*cloud.nova.hosts)
        assert uuid in report["moved"]
        outside.check_same_runs(guests, outside.guests(cloud))
        assert known(theirs, uuid) == said

        theirs.compute.reboot_server(uuid, "HARD")
        await_status(theirs, uuid, "ACTIVE")
        outside.await_lines(cloud, uuid, lines)
        assert outside.guest_of(cloud, uuid).host == host
        assert outside.digest(volume) == content
        theirs.compute.delete_server(uuid, force=True)
        until(lambda: exists(theirs, uuid), lambda found: not found, f"{uuid} to be deleted", PATIENCE)
        assert uuid not in {guest.uuid for guest in outside.guests(cloud)}


def exists(connection: Any, uuid: str) -> bool:
    try:
        connection.compute.get_server(uuid)
    except openstack.exceptions.NotFoundException:
        return False
    return True

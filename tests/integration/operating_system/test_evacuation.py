"""A host dies while Debian writes to its volume: it comes up on the other host with all that it wrote."""

from __future__ import annotations

from typing import Any

import pytest

from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.dead_hosts import come_back
from tests.functional.servers.moves_cloud import until
from tests.integration.embedded_guests import switch_off
from tests.integration.operating_system import ways
from tests.integration.operating_system.debian_servers import Debian, Debians
from tests.integration.operating_system.load import USER_DATA, Session, check_files, check_it_writes


@pytest.fixture
def debian(cloud: AuditedCloud, debians: Debians) -> Debian:
    root = {
        "boot_index": 0,
        "source_type": "image",
        "destination_type": "volume",
        "uuid": cloud.member.image.find_image("debian").id,
        "volume_size": 2,
        "delete_on_termination": True,
    }
    return debians.booted("evacuated", block_device_mapping=[root], user_data=USER_DATA)


def test_debian_comes_up_elsewhere_with_all_that_it_wrote(cloud: AuditedCloud, debian: Debian) -> None:
    dead, other = debian.host, cloud.other_host(debian.server)
    who = "cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub; cloud-init query instance_id"
    same = debian.run(who)
    check_it_writes(debian)
    with Session(debian) as session:
        switch_off(cloud.embedded, dead)
    ways.evacuated(debian)
    assert debian.host == other
    debian.is_booted()
    assert debian.run(who) == same
    check_it_writes(debian)
    assert check_files(debian, session.reported) > 5

    come_back(cloud, dead)
    driver: Any = cloud.parts.computes[dead].host.driver
    until(driver.list_guests, lambda guests: debian.server.id not in guests, "the host to delete its guest")
    until(lambda: cloud.migration(debian.server).status, lambda status: status == "completed", "the host to be clean")
    check_it_writes(debian)
    assert cloud.audit().is_clean

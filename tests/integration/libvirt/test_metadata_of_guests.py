"""A real guest asks at 169.254.169.254 who it is, before and after it goes to another cell."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from causeway.virt.lab.hosts import missing
from tests.functional.servers import patience
from tests.functional.servers.moves_cloud import Cloud, until
from tests.integration.embedded_guests import cloud_with_guests

REASON = missing()
# Again and again, so that it is seen what it reads at its new host. The image's wget wants files that the image does not have.
ASKING = b"""#!/bin/sh
ask() { (printf 'GET %s HTTP/1.0\\r\\n\\r\\n' "$1"; sleep 1) | nc -w 5 169.254.169.254 80 | tail -n 1; }
(while sleep 1; do
    echo "READ type=$(ask /latest/meta-data/instance-type) about=$(ask /openstack/2012-08-10/meta_data.json)" > /dev/console
done) &
"""

pytestmark = [
    pytest.mark.libvirt,
    pytest.mark.skipif(REASON is not None, reason=str(REASON)),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cloud]:
    with cloud_with_guests(
        tmp_path_factory.mktemp("cloud"), overrides={"api": {"metadata_cache_expiration": 0}}
    ) as embedded:
        yield Cloud(embedded)


def reported(cloud: Cloud, server: Any, flavor: str) -> dict[str, Any]:
    """What the guest says that it read, when that has this flavor."""
    host = cloud.show(server).compute_host

    def look() -> list[str]:
        console = cloud.parts.computes[host].host.driver.console_output(server.id).decode(errors="replace")
        return re.findall(rf"READ type={re.escape(flavor)} about=(\{{.*\}})\s*$", console, re.MULTILINE)

    about: dict[str, Any] = json.loads(until(look, bool, f"the guest to read of {flavor}")[-1])
    return about


def test_a_guest_learns_who_it_is(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 180.0)
    server = cloud.boot(config_drive=True, metadata={"purpose": "test"}, user_data=base64.b64encode(ASKING).decode())
    before = cloud.show(server).flavor["original_name"]
    about = reported(cloud, server, before)
    assert (about["uuid"], about["meta"]) == (server.id, {"purpose": "test"})
    cloud.confirmed(cloud.resized(server))
    after = cloud.show(server).flavor["original_name"]
    assert after != before
    assert reported(cloud, server, after)["uuid"] == server.id

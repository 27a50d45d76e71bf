"""Servers that operations of the matrix are asked for: how they are made, asked and waited for."""

from __future__ import annotations

import json
import uuid as uuids
from dataclasses import dataclass, field
from typing import Any

from tests.faults.answers import Answer, call
from tests.faults.clouds.site import Site, until
from tests.faults.world import Holding

# Makes servers in one cell, which has two hosts.
FLAVOR = "gen1.small"
DYING = "cell1-host1"
# Everything must be there again, or gone, within so many seconds when nothing goes wrong.
PATIENCE = 30.0


@dataclass
class Subject:
    """A server that an operation is asked for, with what its user made for it."""

    name: str = field(default_factory=lambda: f"server-{uuids.uuid4().hex[:12]}")
    uuid: str | None = None
    volume_id: str | None = None
    port_id: str | None = None
    # What there was before the operation was asked for.
    before: Holding | None = None
    answer: Answer | None = None


def act(site: Site, subject: Subject, action: str, body: Any = None) -> Answer:
    return call(site, "POST", f"/servers/{subject.uuid}/action", {action: body})


def create(
    site: Site, subject: Subject, *, on_volume: bool = False, host: str | None = None, flavor: str = FLAVOR
) -> Answer:
    """``host``: wanted by an administrator."""
    server: dict[str, Any] = {
        "name": subject.name,
        "flavorRef": flavor,
        "networks": [{"port": subject.port_id} if subject.port_id else {"uuid": site.network_id}],
    }
    if on_volume:
        server["block_device_mapping_v2"] = [site.root_volume()]
    else:
        server["imageRef"] = site.image_id
    if host is not None:
        server["availability_zone"] = f"nova:{host}"
    answer = call(site, "POST", "/servers", {"server": server}, by=site.admin if host is not None else None)
    if answer.is_accepted:
        subject.uuid = json.loads(answer.text)["server"]["id"]
    return answer


def status_of(site: Site, subject: Subject) -> tuple[str | None, str | None]:
    """(status, task) as users see them; None, None if there is no such server."""
    answer = call(site, "GET", f"/servers/{subject.uuid}")
    if answer.status == 404:
        return None, None
    assert answer.is_accepted, f"its user is answered {answer.status} {answer.text[:200]}"
    server = json.loads(answer.text)["server"]
    return server["status"], server["OS-EXT-STS:task_state"]


def wait_for(site: Site, subject: Subject, status: str, patience: float = PATIENCE) -> None:
    seen = until(
        lambda: status_of(site, subject), lambda seen: seen[1] is None and seen[0] in (status, "ERROR"), patience
    )
    assert seen == (status, None), f"a server does not become {status}: it is {seen[0]} with task {seen[1]}"

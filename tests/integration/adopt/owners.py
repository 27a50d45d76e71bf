"""Who owns a host, seen from outside: who takes orders from its queues, and which files say whose it is."""

from __future__ import annotations

from dataclasses import dataclass

import amqp
from sqlalchemy import make_url

from tests.functional.processes.own_process import until
from tests.integration.adopt.adopted_cloud import AdoptedCloud
from tests.integration.adopt.nova import HELD_IDENTITY
from tests.integration.adopt.nova_cloud import NovaCloud

# Seconds until a compute that was started on a busy machine takes orders, or RabbitMQ has noticed that one has ended.
PATIENCE = 300.0
_SECONDS = 30.0
#: what a nova-compute says that finds no identity
REFUSED = "No local node identity found, but this is not our first startup on this host"


@dataclass(frozen=True)
class Owner:
    """``nova``, ``ours``: whose compute takes orders.

    Files: Nova's ``identity``; the same, ``held`` under another name; our ``marker``.
    """

    nova: bool
    ours: bool
    identity: bool
    held: bool
    marker: bool

    @property
    def are_two(self) -> bool:
        """Two take orders, or both may start."""
        return (self.nova and self.ours) or (self.identity and self.marker)


NOVA = Owner(nova=True, ours=False, identity=True, held=False, marker=False)
#: its compute does not run, and may be started
NOVA_STOPPED = Owner(nova=False, ours=False, identity=True, held=False, marker=False)
CAUSEWAY = Owner(nova=False, ours=True, identity=False, held=True, marker=True)
#: its compute serves nobody yet
CAUSEWAY_STOPPED = Owner(nova=False, ours=False, identity=False, held=True, marker=True)
#: neither can start
NOBODY = Owner(nova=False, ours=False, identity=False, held=True, marker=False)


def listens(cloud: NovaCloud, host: str) -> bool:
    """Whether anybody takes the orders for the host's nova-compute."""
    return _has_consumers(cloud, f"nova-{cloud.nova.hosts[host]}", host)


def owner(cloud: NovaCloud, adopted: AdoptedCloud, host: str) -> Owner:
    home = cloud.nova.home(host)
    return Owner(
        nova=listens(cloud, host),
        ours=_has_consumers(cloud, cloud.nova.hosts[host], host),
        identity=(home / "compute_id").exists(),
        held=(home / HELD_IDENTITY).exists(),
        marker=(adopted.directory / "hosts" / host / "taken").exists(),
    )


def await_owner(cloud: NovaCloud, adopted: AdoptedCloud, host: str, expected: Owner) -> None:
    """Raises AssertionError as soon as there are two."""

    def look() -> Owner:
        found = owner(cloud, adopted, host)
        assert not found.are_two, found
        return found

    until(look, expected.__eq__, f"{expected} of {host}", PATIENCE)


def _has_consumers(cloud: NovaCloud, virtual_host: str, host: str) -> bool:
    url = make_url(cloud.broker.url)
    address = f"{url.host}:{url.port}"
    timeouts = {"connect_timeout": _SECONDS, "read_timeout": _SECONDS, "write_timeout": _SECONDS}
    with amqp.Connection(
        address, userid=url.username, password=url.password, virtual_host=virtual_host, **timeouts
    ) as connection:
        try:
            return bool(connection.channel().queue_declare(f"compute.{host}", passive=True).consumer_count)
        except amqp.exceptions.NotFound:
            return False

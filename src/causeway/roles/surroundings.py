"""What every role has around it: the configuration, the queues, and the clients of the services around."""

from __future__ import annotations

from dataclasses import dataclass, replace

import requests
from oslo_config import cfg

from causeway import decoding
from causeway.clients.identity import IdentityClient
from causeway.clients.image import ImageClient
from causeway.clients.keys import KeyClient
from causeway.clients.network import NetworkClient
from causeway.clients.placement import PlacementClient
from causeway.clients.session import ServiceSessions
from causeway.clients.volume import VolumeClient
from causeway.faults import hooks
from causeway.notify.notifier import BlockDeviceLookup, Notifier
from causeway.rpc.transport import Transports


@dataclass
class Surroundings:
    """What all roles of a process share: the configuration, the queues, and the clients of the services around."""

    conf: cfg.ConfigOpts
    transports: Transports
    sessions: ServiceSessions
    placement: PlacementClient
    images: ImageClient
    network: NetworkClient
    volumes: VolumeClient
    identity: IdentityClient
    keys: KeyClient

    def __post_init__(self) -> None:
        self._notifiers: list[Notifier] = []

    def notifier(self, publisher_id: str, block_devices_of: BlockDeviceLookup | None = None) -> Notifier:
        """Makes a notifier; `close` closes it too. A role that writes servers: `notifying.make_notifier`."""
        made = Notifier(None, publisher_id, self.conf, block_devices_of=block_devices_of)
        self._notifiers.append(made)
        return made

    def close(self) -> None:
        for notifier in self._notifiers:
            notifier.close()
        hooks.uninstall(self.conf)
        self.transports.cleanup()
        self.sessions.close()


def make_transports(conf: cfg.ConfigOpts) -> Transports:
    """The queues of a process, ready to be used."""
    decoding.prepare_decoders()
    made = Transports(conf)
    hooks.install(conf, made)
    return made


def make_surroundings(
    conf: cfg.ConfigOpts, placement: PlacementClient, transport: requests.Session | None = None
) -> Surroundings:
    """The clients that a configuration names. ``transport``: see `ServiceSessions`."""
    sessions = ServiceSessions(conf, transport=transport)
    return Surroundings(
        conf=conf,
        transports=make_transports(conf),
        sessions=sessions,
        placement=placement,
        images=ImageClient(sessions),
        network=NetworkClient(sessions),
        volumes=VolumeClient(sessions),
        identity=IdentityClient(sessions),
        keys=KeyClient(sessions),
    )


def surroundings_of_hosts(around: Surroundings, accounts: cfg.ConfigOpts, transport: requests.Session) -> Surroundings:
    """The same for hosts in the same process, which call services with accounts of their own."""
    sessions = ServiceSessions(around.conf, transport=transport, accounts=accounts)
    return replace(
        around,
        sessions=sessions,
        images=ImageClient(sessions),
        network=NetworkClient(sessions),
        volumes=VolumeClient(sessions),
        identity=IdentityClient(sessions),
        keys=KeyClient(sessions),
    )

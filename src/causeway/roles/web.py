"""What is served by HTTP: the Compute API and the metadata service, as WSGI applications."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from causeway import clock, decoding
from causeway.api.app import build_app
from causeway.api.long_polls import LongPolls
from causeway.api.services import ApiServices
from causeway.clients.limits import LimitsClient
from causeway.clients.network import NetworkClient
from causeway.clients.session import ServiceSessions
from causeway.clients.vendordata import Vendordata
from causeway.conf.quota import UNIFIED
from causeway.http.strict import WsgiApp
from causeway.metadata.app import MetadataServices
from causeway.metadata.app import build_app as build_metadata_app
from causeway.policy import Enforcer
from causeway.roles.notifying import make_notifier
from causeway.roles.surroundings import Surroundings
from causeway.rpc.conductor import ConductorClient
from causeway.store.cells import Cells
from causeway.store.database import Database


def make_api_app(
    around: Surroundings, api: Database, cells: Cells, host: str, long_polls: LongPolls
) -> Callable[[dict[str, Any], Any], Iterable[bytes]]:
    """The Compute API as a WSGI application. ``long_polls``: the requests that wait on its server's threads."""
    return build_app(
        ApiServices(
            conf=around.conf,
            api=api,
            cells=cells,
            conductor=ConductorClient(around.transports.get(around.conf.transport_url)),
            placement=around.placement,
            images=around.images,
            network=around.network,
            volumes=around.volumes,
            enforcer=Enforcer(around.conf),
            identity=around.identity,
            limits=LimitsClient(around.conf) if around.conf.quota.driver == UNIFIED else None,
            notifier=make_notifier(around, f"nova-api:{host}", cells),
            long_polls=long_polls,
            clock=clock.of(around.conf.simulated.clock),
        )
    )


def make_metadata_app(sessions: ServiceSessions, api: Database, cells: Cells) -> WsgiApp:
    """The metadata service as a WSGI application. Raises Misconfigured."""
    decoding.prepare_decoders()
    return build_metadata_app(
        MetadataServices(
            conf=sessions.conf,
            api=api,
            cells=cells,
            network=NetworkClient(sessions),
            vendordata=Vendordata(sessions),
        )
    )

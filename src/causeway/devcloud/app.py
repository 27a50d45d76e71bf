"""The whole of devcloud: its services, what they share, and the switches that tests and labs turn."""

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import select

from causeway import durable
from causeway.devcloud import bootstrap
from causeway.devcloud.faults import Faults
from causeway.devcloud.identity.routes import make_service as make_identity
from causeway.devcloud.identity.tokens import Tokens
from causeway.devcloud.image.files import drop_broken_uploads
from causeway.devcloud.image.routes import make_service as make_image
from causeway.devcloud.network.plugging import Plugger
from causeway.devcloud.network.routes import make_service as make_network
from causeway.devcloud.network.topology import NetworkTopology, read_topology
from causeway.devcloud.store import Host, Store
from causeway.devcloud.volume.jobs import VolumeJobs
from causeway.devcloud.volume.routes import make_service as make_volume

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


@dataclass(frozen=True)
class DevcloudConfig:
    """`base_url` is that of the one server on which all services of the catalog are mounted.

    `internal_url`: where calls between services go, if not there, too. `compute_url`: where the Compute API is, if it is
    not mounted there.
    """

    state_dir: Path
    base_url: str
    region: str = "RegionOne"
    compute_url: str | None = None
    internal_url: str | None = None


class Devcloud:
    """The four services over one state directory.

    `apps` maps mount prefixes to WSGI apps, to be called with the prefix in SCRIPT_NAME. What may be set at any time:

    - `plug_delay`: seconds between the binding of a port and its becoming ACTIVE with `network-vif-plugged`;
    - `unpluggable_hosts`: ports on these hosts never become ACTIVE;
    - `port_resource_request_groups`: how ports show what they ask Placement for: as groups, or the older way, as one;
    - `on_ports_changed`: called on a background thread after networks, subnets, ports or bindings changed, and
      before ports that wait for it become ACTIVE;
    - `token_lifetime`: seconds, for tokens issued from then on.

    `calls` counts requests by "service METHOD route".
    """

    def __init__(self, config: DevcloudConfig) -> None:
        self.config = config
        durable.make_folder(config.state_dir)
        self.images_dir = config.state_dir / "images"
        self.volumes_dir = config.state_dir / "volumes"
        durable.make_folder(self.images_dir)
        durable.make_folder(self.volumes_dir)
        self.store = Store(config.state_dir / "devcloud.sqlite")
        self.tokens = Tokens(self.store)
        self.faults = Faults(config.state_dir / "devcloud-faults.yaml")
        self.calls: Counter[str] = Counter()
        self.plug_delay = 0.0
        self.unpluggable_hosts: set[str] = set()
        self.port_resource_request_groups = True
        self.on_ports_changed: Callable[[], None] | None = None
        self._calls_lock = threading.Lock()
        with self.store.transaction() as session:
            self.hosts = set(session.scalars(select(Host.name)))
        drop_broken_uploads(self)
        self.plugger = Plugger(self)
        self.volume_jobs = VolumeJobs(self)
        services = {
            "/identity": make_identity(self),
            "/image": make_image(self),
            "/network": make_network(self),
            "/volume": make_volume(self),
        }
        self.apps: dict[str, WSGIApplication] = {
            prefix: self.faults.wrap(prefix.removeprefix("/"), service.app) for prefix, service in services.items()
        }

    @property
    def token_lifetime(self) -> float:
        return self.tokens.lifetime

    @token_lifetime.setter
    def token_lifetime(self, seconds: float) -> None:
        self.tokens.lifetime = seconds

    def bootstrap(self) -> bootstrap.Accounts:
        """Makes accounts and catalog, or brings the catalog to the present `base_url`; may be called at every start."""
        accounts = bootstrap.run(self.store, self.config)
        self.tokens.forget()
        self.tokens.drop_expired()
        self.plugger.resume()
        return accounts

    def register_hosts(self, names: Iterable[str]) -> None:
        """Makes hosts known to the network service: ports can be bound to them."""
        with self.store.transaction() as session:
            for name in names:
                if session.get(Host, name) is None:
                    session.add(Host(name=name))
                self.hosts.add(name)

    def network_topology(self) -> list[NetworkTopology]:
        """What has to be wired: networks with their subnets and ports, as they are now."""
        with self.store.transaction() as session:
            return read_topology(session)

    def count(self, call: str) -> None:
        with self._calls_lock:
            self.calls[call] += 1

    def reset_calls(self) -> None:
        with self._calls_lock:
            self.calls.clear()

    def close(self) -> None:
        """Ends the background threads and closes the store. Requests must have ended before."""
        self.faults.close()
        self.plugger.close()
        self.volume_jobs.close()
        self.store.close()

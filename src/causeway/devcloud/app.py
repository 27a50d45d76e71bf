"""The whole of devcloud: its services over the state that they share."""

from typing import TYPE_CHECKING

from causeway.devcloud import bootstrap
from causeway.devcloud.cloud import Cloud
from causeway.devcloud.config import DevcloudConfig
from causeway.devcloud.faults import Faults
from causeway.devcloud.identity.routes import make_service as make_identity
from causeway.devcloud.image.files import discard_broken_uploads
from causeway.devcloud.image.routes import make_service as make_image
from causeway.devcloud.key_manager.routes import make_service as make_key_manager
from causeway.devcloud.network.routes import make_service as make_network
from causeway.devcloud.network.topology import NetworkTopology, read_topology
from causeway.devcloud.volume.routes import make_service as make_volume

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication


class Devcloud(Cloud):
    """The services over one state directory, with the switches that tests and labs turn (`Switches`).

    `apps` maps mount prefixes to WSGI apps, which must be called with the prefix in SCRIPT_NAME. `token_lifetime`: seconds, for
    new tokens; it may be set at any time.
    """

    def __init__(self, config: DevcloudConfig) -> None:
        super().__init__(config)
        self.faults = Faults(config.state_dir / "devcloud-faults.yaml")
        discard_broken_uploads(self)
        services = {
            "/identity": make_identity(self),
            "/image": make_image(self),
            "/key-manager": make_key_manager(self),
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
        """Makes accounts and catalog, or updates the catalog to the present `base_url`. May be called at every start."""
        accounts = bootstrap.run(self.store, self.config)
        self.tokens.clear_cache()
        self.tokens.delete_expired()
        self.plugger.resume()
        return accounts

    def network_topology(self) -> list[NetworkTopology]:
        """The networks that must be wired, with their subnets and ports, as they are now."""
        with self.store.transaction() as session:
            return read_topology(session)

    def close(self) -> None:
        """Ends the background threads and closes the store. All requests must have ended."""
        self.faults.close()
        super().close()

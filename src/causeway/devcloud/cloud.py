"""The state that the services share, for their handlers. It imports none of them."""

import threading
from collections import Counter
from collections.abc import Iterable

from sqlalchemy import select

from causeway import durable
from causeway.devcloud.access.tokens import Tokens
from causeway.devcloud.background.plugging import Plugger
from causeway.devcloud.background.volume_jobs import VolumeJobs
from causeway.devcloud.config import DevcloudConfig
from causeway.devcloud.store import Store
from causeway.devcloud.switches import Switches
from causeway.devcloud.tables.network import Host


class Cloud(Switches):
    """State and background work over one directory. `calls` counts requests by "service METHOD route"."""

    def __init__(self, config: DevcloudConfig) -> None:
        super().__init__(config.state_dir / "devcloud-switches.yaml")
        self.config = config
        durable.make_folder(config.state_dir)
        self.images_dir = config.state_dir / "images"
        self.volumes_dir = config.state_dir / "volumes"
        durable.make_folder(self.images_dir)
        durable.make_folder(self.volumes_dir)
        self.store = Store(config.state_dir / "devcloud.sqlite")
        self.tokens = Tokens(self.store)
        self.calls: Counter[str] = Counter()
        self._calls_lock = threading.Lock()
        with self.store.transaction() as session:
            self.hosts = set(session.scalars(select(Host.name)))
        self.plugger = Plugger(self.store, self.tokens, self, config.transport)
        self.volume_jobs = VolumeJobs(self.store)

    def register_hosts(self, names: Iterable[str]) -> None:
        """Registers hosts with the network service, so that ports can be bound to them."""
        with self.store.transaction() as session:
            for name in names:
                if session.get(Host, name) is None:
                    session.add(Host(name=name))
                self.hosts.add(name)

    def count(self, call: str) -> None:
        with self._calls_lock:
            self.calls[call] += 1

    def reset_calls(self) -> None:
        with self._calls_lock:
            self.calls.clear()

    def close(self) -> None:
        """Ends the background threads and closes the store. All requests must have ended."""
        self.plugger.close()
        self.volume_jobs.close()
        self.store.close()

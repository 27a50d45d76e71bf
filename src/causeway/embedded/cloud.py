"""The embedded cloud: runs every role and everything around them in one process."""

from __future__ import annotations

import hashlib
import logging
import socket
import uuid as uuids
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from keystoneauth1 import loading
from keystonemiddleware import opts as keystonemiddleware_opts
from oslo_config import cfg
from oslo_log import log
from oslo_policy import opts as policy_opts

from causeway import durable
from causeway.api.long_polls import LONG_POLLS, LongPolls
from causeway.clients.connections import new_transport
from causeway.conf import AUTH_GROUPS, new_config, paths
from causeway.conf.conductor import SUPER
from causeway.devcloud import Accounts, Devcloud, DevcloudConfig
from causeway.embedded import content
from causeway.embedded.host_kinds import Hosts, LibvirtHosts, SimulatedHosts
from causeway.embedded.lock import StateDirLock
from causeway.embedded.metadata_agent import guests_of
from causeway.embedded.placement.local import local_placement
from causeway.embedded.settings import StateDir
from causeway.embedded.web import THREADS, WebServer
from causeway.metrics import endpoint
from causeway.model.host import CELL0_UUID, CellMapping
from causeway.operations.metrics import OperationsCollector
from causeway.roles.cells import cells_of
from causeway.roles.compute import make_compute
from causeway.roles.conductor import make_cell_conductor, make_conductor
from causeway.roles.console_proxy import make_console_proxy
from causeway.roles.scheduler import SchedulerService
from causeway.roles.surroundings import make_surroundings, surroundings_of_hosts
from causeway.roles.web import make_api_app, make_metadata_app
from causeway.store import schema
from causeway.store.api import cells as cell_records
from causeway.store.cells import Cells
from causeway.store.database import Database
from causeway.virt.simulated.hardware import from_options
from causeway.without_effect import without_effect

if TYPE_CHECKING:
    from causeway.console_proxy.server import ConsoleProxy
    from causeway.virt.libvirt.storage.disk_pools import DiskPool

LOG = logging.getLogger(__name__)

# Threads for moves, unless the user's files set another number. All share one interpreter, and more would contend for its lock.
OPERATION_THREADS = 4

DriverName = Literal["libvirt", "simulated"]


class EmbeddedCloud:
    """`causeway up`: `start` returns when requests can be served, `stop` when everything has ended.

    There are ``hosts_per_cell`` hosts in each of ``cells`` cells, named cell1-host1, cell1-host2, ..., cell2-host1, ... A cloud
    that starts on the state directory of an earlier one has everything of it, including its guests.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        port: int = 8774,
        console_port: int = 0,
        cells: int = 2,
        hosts_per_cell: int = 1,
        driver: DriverName = "simulated",
        config_files: Sequence[str] = (),
        policy_file: str | None = None,
        overrides: dict[str, dict[str, Any]] | None = None,
        log_file: Path | None = None,
        database_url: Callable[[str], str] | None = None,
        on_progress: Callable[[str], None] = lambda _what: None,
        pools: Mapping[str, DiskPool] | None = None,
    ) -> None:
        """``on_progress`` is called with the name of each thing before `start` starts it.

        ``pools``: see `LibvirtHosts`.
        """
        self.state = StateDir(state_dir.resolve())
        self.hosts_by_cell = [
            [f"cell{cell}-host{host}" for host in range(1, hosts_per_cell + 1)] for cell in range(1, cells + 1)
        ]
        self._on_progress = on_progress
        self._pools = pools or {}
        self._port = port
        self._console_port = console_port
        self._driver = driver
        self._config_files = config_files
        self._policy_file = policy_file
        self._overrides = overrides or {}
        self._log_file = log_file
        # URL by name ("api", "cell0", "cell1", ...); SQLite files unless something else is given.
        self._database_url = database_url or self.state.database
        self._cleanup = ExitStack()
        self._new_hosts: set[str] = set()
        #: what its configuration says for nothing
        self.notes: list[str] = []
        # Clouds in one process must not share queues.
        self._queues = hashlib.sha256(str(self.state.path).encode()).hexdigest()[:12]

    def start(self) -> None:
        """Starts everything. If something fails, stops what was started."""
        with self._cleanup as started:
            self._start()
            self._cleanup = started.pop_all()

    def stop(self) -> None:
        """Stops everything in the reverse order. Guests of libvirt hosts continue to run."""
        self._cleanup.close()

    def _start(self) -> None:
        self.state.prepare()
        on_stop = self._cleanup.callback
        on_stop(StateDirLock(self.state.path).release)
        self.web = WebServer(self._port, internal=True)
        # It listens. Once it serves, it stops before what its requests need: see below.
        on_stop(self.web.stop)
        self.url = self.web.url
        # For everything that calls the internal URL, except keystonemiddleware, which has its own session.
        self._transport = new_transport()
        self._transport.mount(f"{self.web.internal_url}/", self.web.direct)
        on_stop(self._transport.close)
        self._on_progress("identity, images, networks, volumes and Placement")
        self.devcloud, self.accounts = self._start_devcloud()
        self.placement = local_placement(self.state.database("placement"))
        on_stop(self.placement.close)
        self.conf = self._configure()
        self.around = make_surroundings(self.conf, self.placement.client(), self._transport)
        on_stop(self.around.close)
        self.around_of_hosts = surroundings_of_hosts(self.around, self._accounts_of_hosts(), self._transport)
        on_stop(self.around_of_hosts.sessions.close)
        self._on_progress(f"databases of the API and of {len(self.hosts_by_cell)} cells")
        self.api_database, self.cells = self._open_databases()

        placement_app = self.placement.public_app(self._authtoken("placement"))
        self.web.mount("/placement", self.devcloud.faults.wrap("placement", placement_app))
        long_polls = LongPolls(round(THREADS * LONG_POLLS))
        self.web.mount(
            "/compute",
            make_api_app(self.around, self.api_database, self._cells_of_api(), socket.gethostname(), long_polls),
        )
        self._metadata = make_metadata_app(self.around.sessions, self.api_database, self.cells)
        self.web.mount("/metadata", self._metadata)
        if self.conf.metrics.enabled:
            self.web.mount("/metrics", endpoint.application([OperationsCollector(self.api_database)]))
        self.web.start()
        on_stop(self.web.stop)
        on_stop(long_polls.stop)
        self.console_proxy = self._make_console_proxy()
        hosts = sum(len(hosts) for hosts in self.hosts_by_cell)
        self._on_progress(f"scheduler, conductor, and computes of {hosts} hosts")
        self._start_roles()
        self.console_proxy.start()
        on_stop(self.console_proxy.stop)
        self._on_progress("flavors, aggregates, an image and a network")
        self._fill()
        users = {"causeway": "demo", "causeway-admin": "admin"}
        self.state.write_clouds(
            self.accounts.auth_url,
            {
                cloud: (self.accounts[user].username, self.accounts[user].password, self.accounts[user].project_name)
                for cloud, user in users.items()
            },
        )

        credentials = self._authtoken("causeway") | {"auth_url": self.accounts.auth_url}
        del credentials["www_authenticate_uri"]
        self.state.write_manage({"api_database": {"connection": self._database_url("api")}, "placement": credentials})

    def _start_devcloud(self) -> tuple[Devcloud, Accounts]:
        config = DevcloudConfig(
            self.state.devcloud, self.url, internal_url=self.web.internal_url, transport=self._transport
        )
        devcloud = Devcloud(config)
        self._cleanup.callback(devcloud.close)
        accounts = devcloud.bootstrap()
        devcloud.register_hosts([host for hosts in self.hosts_by_cell for host in hosts])
        for prefix, app in devcloud.apps.items():
            self.web.mount(prefix, app)
        return devcloud, accounts

    def _authtoken(self, user: str) -> dict[str, Any]:
        account = self.accounts[user]
        return {
            "auth_type": "password",
            "auth_url": self.accounts.internal_auth_url,
            "www_authenticate_uri": self.accounts.auth_url,
            "username": account.username,
            "password": account.password,
            "project_name": account.project_name,
            "user_domain_id": account.domain_id,
            "project_domain_id": account.domain_id,
        }

    def _configure(self) -> cfg.ConfigOpts:
        """The options of all roles: defaults, then the user's files, then what the embedded parts need."""
        credentials = self._authtoken("causeway")
        middleware = {name: credentials.pop(name) for name in ("www_authenticate_uri",)}
        options: dict[str, Any] = {group: dict(credentials) for group in AUTH_GROUPS if group != "placement"}
        options["service_user"]["send_service_user_token"] = True
        # Nova's default is the public endpoint. Here, calls between services have a port of their own.
        options["cinder"]["catalog_info"] = "volumev3::internalURL"
        options["transport_url"] = self._queue("api")
        options["state_path"] = str(self.state.path)
        options["my_ip"] = "127.0.0.1"
        if self._log_file is not None:
            options["log_file"] = str(self._log_file)
        conf = new_config(config_files=self._config_files, **options)
        # If the user's files choose unified limits, they are those of the embedded identity service.
        conf.set_default("valid_interfaces", ["internal", "public"], group="oslo_limit")
        conf.set_default("workers", OPERATION_THREADS, group="moves")
        # No caller may read another server's metadata: unless the user's files say otherwise, requests must be signed.
        conf.set_default("service_metadata_proxy", True, group="neutron")
        conf.set_default("metadata_proxy_shared_secret", self.state.metadata_secret(), group="neutron")
        for _group, known in keystonemiddleware_opts.list_auth_token_opts():
            conf.register_opts(known, group="keystone_authtoken")
        conf.register_opts(loading.get_auth_common_conf_options(), group="keystone_authtoken")
        conf.register_opts(loading.get_auth_plugin_conf_options("password"), group="keystone_authtoken")
        for name, value in {**credentials, **middleware}.items():
            conf.set_override(name, value, group="keystone_authtoken")
        # As an override: defaults of oslo.policy's options are shared by all configurations of a process.
        policy_opts.set_defaults(conf)
        conf.set_override("policy_file", self._policy_file or str(self.state.policy), group="oslo_policy")
        for group, values in self._overrides.items():
            for name, value in values.items():
                conf.set_override(name, value, group=None if group == "DEFAULT" else group)
        paths.resolve(conf)
        if self._log_file is not None:
            # oslo.log's formatter puts request id, user, project and server into every line.
            log.setup(conf, "causeway")
        self.notes = without_effect(conf, with_policy=True)
        return conf

    def _accounts_of_hosts(self) -> cfg.ConfigOpts:
        """Hosts call the services around with an account that is no administrator's."""
        account = self._authtoken("causeway-compute")
        del account["www_authenticate_uri"]
        accounts: dict[str, Any] = {group: dict(account) for group in AUTH_GROUPS}
        return new_config(config_files=self._config_files, **accounts)

    def _queue(self, name: str) -> str:
        return f"causeway-memory://{self._queues}-{name}"

    def _open_databases(self) -> tuple[Database, Cells]:
        api = Database(self._database_url("api"), "the API", synchronous=self.conf.api_database.sqlite_synchronous)
        self._cleanup.callback(api.close)
        schema.sync(api, "api")
        known = {cell.name: cell for cell in cell_records.list_cells(api)}
        for number, name in enumerate(["cell0", *(f"cell{n}" for n in range(1, len(self.hosts_by_cell) + 1))]):
            url = self._database_url(name)
            database = Database(url, name)
            schema.sync(database, "cell")
            database.close()
            identity = known[name].uuid if name in known else str(uuids.uuid4())
            if number and name not in known:
                # Makes a cell anew that was deleted, without the records of its hosts.
                self._new_hosts |= {*self.hosts_by_cell[number - 1]}
            queue = "none:///" if number == 0 else self._queue(name)
            cell_records.save_cell(api, CellMapping(CELL0_UUID if number == 0 else identity, name, queue, url))
        cells = cells_of(self.conf, api)
        self._cleanup.callback(cells.close)
        return api, cells

    def _cells_of_api(self) -> Cells:
        """The same as the conductor's, unless changes of states are notified: then each of the two notifies of what it saves."""
        if self.conf.notifications.notify_on_state_change is None:
            return self.cells
        cells = cells_of(self.conf, self.api_database)
        self._cleanup.callback(cells.close)
        return cells

    def _make_console_proxy(self) -> ConsoleProxy:
        """Called before the hosts are made, since they get the URLs by which their guests' consoles are opened."""
        proxy = make_console_proxy(self.conf, self.around.transports, self.cells, "127.0.0.1", self._console_port)
        self._cleanup.callback(proxy.server_close)
        here = f"//127.0.0.1:{proxy.port}"
        for group, name, value in (
            ("vnc", "novncproxy_base_url", f"http:{here}/screen.html"),
            ("serial_console", "base_url", f"ws:{here}/"),
            ("serial_console", "enabled", True),
        ):
            # The user's files have priority.
            self.conf.set_default(name, value, group=group)
        return proxy

    def _start_roles(self) -> None:
        on_stop, name = self._cleanup.callback, socket.gethostname()
        by_name = {cell.name: cell for cell in self.cells.mappings(cell0=False)}
        cells = [by_name[f"cell{number}"] for number in range(1, len(self.hosts_by_cell) + 1)]
        scheduler = SchedulerService(self.around, self.cells, name)
        on_stop(scheduler.stop)
        scheduler.start()
        apart = self.conf.conductor.role == SUPER
        conductor = make_conductor(self.around, self.api_database, self.cells, name, of_cells=() if apart else None)
        conductor.start()
        self.conductor = conductor
        on_stop(conductor.stop)
        for cell in cells if apart else ():
            of_cell = make_cell_conductor(
                self.conf, self.around.transports, name, self.cells.open(cell), cell.transport_url
            )
            of_cell.start()
            on_stop(of_cell.stop)
        self.hosts: Hosts = SimulatedHosts(
            self.state,
            self.devcloud,
            from_options(self.conf),
            {
                host: self.conf.simulated.live_networks.get(host, cell.name)
                for cell, hosts in zip(cells, self.hosts_by_cell, strict=True)
                for host in hosts
            },
            self.conf.simulated.shared_stores,
        )
        if self._driver == "libvirt":
            guests = partial(guests_of, self._metadata, self.around.network, self.conf)
            self.hosts = LibvirtHosts(self.state, self.devcloud, self.conf, guests, self._pools)
        self.hosts.start([host for hosts in self.hosts_by_cell for host in hosts])
        on_stop(self.hosts.stop)
        self.computes = {}
        for cell, hosts in zip(cells, self.hosts_by_cell, strict=True):
            for host in hosts:
                service = make_compute(
                    self.around_of_hosts, host, self.hosts.driver(host), cell.transport_url, self.state.host(host)
                )
                # First, so that nothing is left running if one can't start.
                on_stop(service.stop)
                service.start()
                self.computes[host] = service
        scheduler.invalidate()
        conductor.recover(alone=True)
        on_stop(conductor.release_operations)

    def _fill(self) -> None:
        """Makes an image, a network and flavors at the first start, and puts new hosts into aggregates at every start."""
        marker = self.state.path / "filled"
        is_first = not marker.exists()
        known = set() if is_first else set(marker.read_text().split()) - self._new_hosts
        new = [[host for host in hosts if host not in known] for hosts in self.hosts_by_cell]
        if is_first:
            content.make_flavors(self.api_database)
        if any(new):
            content.make_aggregates(self.api_database, self.around.placement, new)
        if is_first:
            content.make_image(self.around.images, *self.hosts.demo_image())
            content.make_network(self.around.sessions)
        if is_first or any(new):
            durable.write(marker, "\n".join(sorted(known | {host for hosts in new for host in hosts})))

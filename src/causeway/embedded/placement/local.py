"""The real Placement in this process: its own code, its own database, no socket.

A process can have only one, because Placement keeps its database connection and its policy in module globals. It gets two
applications, on two configuration objects:

- ``internal_app``: accepts the token ``admin`` as an administrator. Never serve it.
- ``public_app``: behind keystonemiddleware, for the outside world (the ``openstack`` client's placement plug-in).

SQLite: a file in WAL mode with ``synchronous=NORMAL`` (a crash of the machine may lose the last commits, but never damages the
file). Connections are pooled; oslo.db would open one for every transaction, which costs a third of a call's time. SQLite has one
writer at a time, and refuses a transaction that reads before it writes if another writer was in between. So requests that may
write take turns here. `schemas` saves another third of the time, `aliases` and `names` each a sixth of the rest.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import placement.conf
import requests
from keystoneauth1 import loading, token_endpoint
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystonemiddleware import opts as keystonemiddleware_opts
from oslo_config.cfg import ConfigOpts
from oslo_db.sqlalchemy import enginefacade
from placement import db_api, deploy, policy
from placement.db.sqlalchemy import migration
from placement.objects import resource_class, trait
from sqlalchemy import Engine, event
from sqlalchemy.pool import QueuePool

from causeway.clients.placement.client import PlacementClient
from causeway.embedded.placement import aliases, names, schemas
from causeway.http.direct import DirectTransport
from causeway.http.strict import WsgiApp

INTERNAL_URL = "http://placement.internal"
SQLITE_BUSY_TIMEOUT_SECONDS = 30
_READ_ONLY_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})

_running: LocalPlacement | None = None
_starting = threading.Lock()


class LocalPlacement:
    """A running Placement. Made by `local_placement`; `close` it before another one is started."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._is_sqlite = url.startswith("sqlite:")
        self._write_turn = threading.Lock()
        self._manager = enginefacade.transaction_context()
        # Waiting threads get the interpreter's lock with each statement, not only if a connection is returned to its pool.
        self._manager.configure(connection=url, thread_checkin=False)
        if self._is_sqlite:
            self._manager.append_on_engine_create(_tune_sqlite)
        self._restore_database = db_api.placement_context_manager.patch_factory(self._manager)
        self._restore_validation = schemas.check_once()
        self._restore_aliases = aliases.make_once()
        # Others may write the database of a server.
        self._restore_names = names.remember() if self._is_sqlite else lambda: None
        # Placement remembers per process that these are in the database, but this may be another database.
        trait._TRAITS_SYNCED = False
        resource_class._RESOURCE_CLASSES_SYNCED = False
        migration.upgrade("head")
        config = self._config("noauth2")
        policy.init(config)
        self.internal_app: WsgiApp = self._in_turn(deploy.deploy(config))
        deploy.update_database(config)

    def public_app(self, keystone_authtoken: Mapping[str, Any]) -> WsgiApp:
        """The application for the outside world.

        ``keystone_authtoken``: the options of keystonemiddleware by name, those of the ``password`` plug-in included
        (auth_url, username, password, project_name, ...).
        """
        config = self._config("keystone")
        for _group, options in keystonemiddleware_opts.list_auth_token_opts():
            config.register_opts(options, group="keystone_authtoken")
        config.register_opts(loading.get_auth_common_conf_options(), group="keystone_authtoken")
        plugin = keystone_authtoken.get("auth_type", "password")
        config.register_opts(loading.get_auth_plugin_conf_options(plugin), group="keystone_authtoken")
        for name, value in keystone_authtoken.items():
            config.set_override(name, value, group="keystone_authtoken")
        return self._in_turn(deploy.deploy(config))

    def client(self) -> PlacementClient:
        """A client that calls ``internal_app`` in this process.

        All callers should share one, because it remembers what it wrote.
        """
        session = requests.Session()
        session.mount(INTERNAL_URL, DirectTransport(self.internal_app))
        session.trust_env = False
        auth = token_endpoint.Token(INTERNAL_URL, "admin")
        return PlacementClient(Adapter(Session(auth=auth, session=session), endpoint_override=INTERNAL_URL))

    def close(self) -> None:
        """Closes the database connections, so that another Placement can be started. All calls must have ended."""
        global _running
        with _starting:
            if _running is self:
                self._manager.dispose_pool()
                self._restore_database()
                self._restore_validation()
                self._restore_aliases()
                self._restore_names()
                policy.reset()
                _running = None

    def _config(self, auth_strategy: str) -> ConfigOpts:
        config = ConfigOpts()
        placement.conf.register_opts(config)
        config.set_default("connection", self._url, group="placement_database")
        # Read neither options nor policy from the machine's /etc/placement.
        config([], project="placement", default_config_files=[], default_config_dirs=[])
        config.set_override("auth_strategy", auth_strategy, group="api")
        config.set_override("policy_file", os.devnull, group="oslo_policy")
        return config

    def _in_turn(self, application: WsgiApp) -> WsgiApp:
        if not self._is_sqlite:
            return application

        def serialised(environ: dict[str, Any], start_response: Any) -> Any:
            if environ["REQUEST_METHOD"] in _READ_ONLY_METHODS:
                return application(environ, start_response)
            with self._write_turn:
                return application(environ, start_response)

        return serialised


def local_placement(database: Path | str) -> LocalPlacement:
    """Starts Placement on a database: a file's path (SQLite) or a URL. Makes or upgrades the schema.

    Raises RuntimeError if one runs in this process already.
    """
    global _running
    url = database if isinstance(database, str) and "://" in database else f"sqlite:///{Path(database).absolute()}"
    with _starting:
        if _running is not None:
            raise RuntimeError("a Placement runs in this process already; close it before another one is started")
        _running = LocalPlacement(url)
        return _running


def _tune_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def _set_pragmas(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA busy_timeout={SQLITE_BUSY_TIMEOUT_SECONDS * 1000}")

    old = engine.pool
    engine.pool = QueuePool(old._creator, pool_size=5, max_overflow=50, dialect=engine.dialect, _dispatch=old.dispatch)

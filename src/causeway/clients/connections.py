"""Connections, credentials and call counts that all clients of a process share. `causeway.clients.session` is the manual."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import requests
from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1 import loading
from keystoneauth1.session import Session
from oslo_config.cfg import ConfigOpts
from requests.adapters import HTTPAdapter

from causeway import errors

POOL_HOSTS = 16
POOL_CONNECTIONS_PER_HOST = 32
DEFAULT_TIMEOUT_SECONDS = 60.0
REMEMBERED_EXPIRED_TOKENS = 1000


class Calls:
    """Counts calls by "service METHOD /route/{template}". Retries count too.

    ``before`` and ``after`` are for fault injection: they are called with the key before a call is sent and after its answer
    came. They may wait, or raise.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()
        self.before: Callable[[str], None] | None = None
        self.after: Callable[[str], None] | None = None

    def count(self, key: str) -> None:
        with self._lock:
            self._counts[key] += 1

    def snapshot(self) -> Counter[str]:
        """The counts since the start or the last reset."""
        with self._lock:
            return self._counts.copy()

    def reset(self) -> None:
        with self._lock:
            self._counts.clear()


calls = Calls()


@dataclass(frozen=True)
class Credentials:
    """The service's own credentials for one group of options."""

    auth: Any
    session: Session


class ServiceSessions:
    """Connections and credentials for all clients of a process.

    ``conf`` has the options of `causeway.conf`. ``transport`` is a requests.Session to use instead of one of our own (with
    in-process transports mounted on it, for example); it is not closed with this object. ``accounts``: options with other
    accounts than those of ``conf``.
    """

    def __init__(
        self, conf: ConfigOpts, *, transport: requests.Session | None = None, accounts: ConfigOpts | None = None
    ) -> None:
        self.conf = conf
        self._accounts = conf if accounts is None else accounts
        self._own_transport = transport is None
        self.transport = transport if transport is not None else new_transport()
        self.is_without_identity = conf.api.auth_strategy == "noauth2"
        self.sends_service_token = bool(conf.service_user.send_service_user_token)
        self.stopping = threading.Event()
        self._lock = threading.RLock()
        self._credentials: dict[str, Credentials | None] = {}
        self._expired: OrderedDict[bytes, None] = OrderedDict()

    def close(self) -> None:
        """Closes the connections. Calls that wait before a retry fail."""
        self.stopping.set()
        if self._own_transport:
            self.transport.close()

    def credentials(self, group: str) -> Credentials | None:
        """The credentials of a group, or of [service_user] if it has none; None if neither has."""
        with self._lock:
            if group not in self._credentials:
                self._credentials[group] = self._load(group) or (
                    self.credentials("service_user") if group != "service_user" else None
                )
            return self._credentials[group]

    def _load(self, group: str) -> Credentials | None:
        try:
            auth = loading.load_auth_from_conf_options(self._accounts, group)
        except keystone_errors.MissingAuthPlugin:
            auth = None
        if auth is None:
            return None
        options = self.conf[group]
        verify, cert = certificates(options)
        timeout = options.timeout or DEFAULT_TIMEOUT_SECONDS
        return Credentials(auth, Session(session=self.transport, verify=verify, cert=cert, timeout=timeout))

    def token(self, credentials: Credentials, *, fresh: bool = False) -> str:
        """A token for the service's own credentials, cached until shortly before it expires."""
        if fresh:
            credentials.auth.invalidate()
        try:
            return str(credentials.auth.get_token(credentials.session))
        except keystone_errors.ClientException as error:
            raise errors.ServiceFailed(
                "The identity service gave no token for the service's own credentials. Try again later.",
                details=f"{type(error).__name__}: {error}",
            ) from error

    def has_expired(self, token: str) -> bool:
        with self._lock:
            return _digest(token) in self._expired

    def remember_expired(self, token: str) -> None:
        with self._lock:
            self._expired[_digest(token)] = None
            if len(self._expired) > REMEMBERED_EXPIRED_TOKENS:
                self._expired.popitem(last=False)


def new_transport() -> requests.Session:
    """Makes a session with kept connections, for everything in a process that speaks HTTP."""
    transport = requests.Session()
    # Do not look up the environment's proxies at every call: this is done once per endpoint.
    transport.trust_env = False
    for prefix in ("http://", "https://"):
        transport.mount(prefix, HTTPAdapter(POOL_HOSTS, POOL_CONNECTIONS_PER_HOST))
    return transport


def certificates(options: Any) -> tuple[Any, Any]:
    """(verify, cert) as `requests` takes them."""
    verify = False if options.insecure else options.cafile or True
    return verify, (options.certfile, options.keyfile) if options.certfile and options.keyfile else options.certfile


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()

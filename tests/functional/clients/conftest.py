"""The clients against devcloud, with and without a socket, as users (``demo``, ``other``) and as the service (``causeway``)."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import requests
from cheroot import wsgi
from oslo_config import cfg

from causeway.clients import session as client_session
from causeway.clients.connections import new_transport
from causeway.clients.identity import IdentityClient
from causeway.clients.image import ImageClient
from causeway.clients.network import NetworkClient
from causeway.clients.session import ServiceSessions
from causeway.clients.volume import VolumeClient
from causeway.conf import new_config
from causeway.context import RequestContext
from causeway.devcloud import Accounts, Devcloud, DevcloudConfig
from causeway.http.direct import DirectTransport

HOSTS = ("host1", "host2")


@dataclass
class Around:
    """The services around us, and how to call them."""

    cloud: Devcloud
    accounts: Accounts
    conf: cfg.ConfigOpts
    sessions: ServiceSessions

    def log_in(self, user: str) -> RequestContext:
        """A context with a fresh token of the user."""
        account = self.accounts[user]
        domain = {"domain": {"id": "default"}}
        answer = requests.post(
            f"{self.accounts.auth_url}/auth/tokens",
            json={
                "auth": {
                    "identity": {
                        "methods": ["password"],
                        "password": {"user": {"name": user, "password": account.password, **domain}},
                    },
                    "scope": {"project": {"name": account.project_name, **domain}},
                }
            },
            timeout=20,
        )
        token = answer.json()["token"]
        return RequestContext(
            auth_token=answer.headers["X-Subject-Token"],
            user_id=token["user"]["id"],
            project_id=token["project"]["id"],
            roles=[role["name"] for role in token["roles"]],
            overwrite=False,
        )

    def ask(self, context: RequestContext, method: str, path: str, body: Any = None) -> Any:
        """A raw request, for what only a user does (making networks, ...)."""
        answer = requests.request(
            method,
            self.cloud.config.base_url + path,
            json=body,
            headers={"X-Auth-Token": context.auth_token or ""},
            timeout=20,
        )
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None


class _Mounted:
    def __init__(self) -> None:
        self.apps: dict[str, Any] = {}

    def __call__(self, environ: Any, start_response: Any) -> Any:
        prefix, _, _rest = environ["PATH_INFO"].lstrip("/").partition("/")
        app = self.apps.get(f"/{prefix}")
        if app is None:
            start_response("200 OK", [("Content-Length", "0")])
            return []
        environ["SCRIPT_NAME"] = f"/{prefix}"
        environ["PATH_INFO"] = environ["PATH_INFO"][len(prefix) + 1 :]
        return app(environ, start_response)


def credentials(accounts: Accounts) -> dict[str, Any]:
    account = accounts["causeway"]
    return {
        "auth_type": "password",
        "auth_url": accounts.auth_url,
        "username": account.username,
        "password": account.password,
        "project_name": account.project_name,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }


@pytest.fixture(scope="session", params=["socket", "direct"])
def running(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Around]:
    mounted = _Mounted()
    server = wsgi.Server(("127.0.0.1", 0), mounted, numthreads=8)
    server.error_log = lambda *_args, **_more: None  # type: ignore[method-assign]
    server.prepare()
    url = f"http://127.0.0.1:{server.bind_addr[1]}"
    cloud = Devcloud(DevcloudConfig(tmp_path_factory.mktemp("devcloud"), url))
    accounts = cloud.bootstrap()
    cloud.register_hosts(HOSTS)
    mounted.apps = dict(cloud.apps)
    thread = threading.Thread(target=server.serve, name="test-server")
    thread.start()
    conf = new_config(service_user=credentials(accounts))
    transport = new_transport()
    if request.param == "direct":
        transport.mount(f"{url}/", DirectTransport(mounted))
    sessions = ServiceSessions(conf, transport=transport)
    yield Around(cloud, accounts, conf, sessions)
    sessions.close()
    transport.close()
    cloud.faults.clear()
    server.stop()
    thread.join(10)
    cloud.close()


@pytest.fixture
def around(running: Around) -> Iterator[Around]:
    client_session.calls.reset()
    yield running
    running.cloud.faults.clear()
    client_session.calls.before = client_session.calls.after = None


@pytest.fixture
def demo(around: Around) -> RequestContext:
    """A project member."""
    return around.log_in("demo")


@pytest.fixture
def other(around: Around) -> RequestContext:
    """A member of another project."""
    return around.log_in("other")


@pytest.fixture
def nobody() -> RequestContext:
    """A context without a token, as after a crash; the project is known."""
    return RequestContext(is_admin=True, overwrite=False)


@pytest.fixture
def images(around: Around) -> ImageClient:
    return ImageClient(around.sessions)


@pytest.fixture
def network(around: Around) -> NetworkClient:
    return NetworkClient(around.sessions)


@pytest.fixture
def volumes(around: Around) -> VolumeClient:
    return VolumeClient(around.sessions)


@pytest.fixture
def identity(around: Around) -> IdentityClient:
    return IdentityClient(around.sessions)


@pytest.fixture
def new_network(around: Around) -> Callable[..., tuple[str, str]]:
    """Makes a network with a subnet as a user; returns both ids."""

    def make(context: RequestContext, name: str = "net", cidr: str = "10.1.0.0/24") -> tuple[str, str]:
        net = around.ask(context, "POST", "/network/v2.0/networks", {"network": {"name": name}})["network"]["id"]
        body = {"subnet": {"network_id": net, "cidr": cidr, "ip_version": 4, "dns_nameservers": ["192.0.2.53"]}}
        return net, around.ask(context, "POST", "/network/v2.0/subnets", body)["subnet"]["id"]

    return make


@pytest.fixture
def server_uuid() -> str:
    return str(uuid.uuid4())

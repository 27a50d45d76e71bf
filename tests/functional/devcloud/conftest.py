"""A devcloud on a free port, and what the tests drive it with."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openstack
import pytest
import requests
from cheroot import wsgi

from causeway.devcloud import Accounts, Devcloud, DevcloudConfig
from causeway.http.direct import DirectTransport

HOSTS = ("cell1-host1", "cell2-host1")


class ComputeSink:
    """Stands where Compute is in the catalog, and takes the events that the network service posts."""

    def __init__(self) -> None:
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.failures = 0

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        body = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
        if self.failures:
            self.failures -= 1
            start_response("503 Service Unavailable", [("Content-Length", "0")])
            return []
        for event in body["events"]:
            self.events.put({**event, "token": environ["HTTP_X_AUTH_TOKEN"], "path": environ["PATH_INFO"]})
        start_response("200 OK", [("Content-Length", "0")])
        return []


class Dispatcher:
    """Calls the app of the longest prefix, as the server that devcloud is mounted on does."""

    def __init__(self) -> None:
        self.apps: dict[str, Any] = {}

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        prefix = environ["PATH_INFO"].lstrip("/").partition("/")[0]
        app = self.apps.get(f"/{prefix}")
        if app is None:
            start_response("404 Not Found", [("Content-Length", "0")])
            return []
        environ["SCRIPT_NAME"] = f"/{prefix}"
        environ["PATH_INFO"] = environ["PATH_INFO"][len(prefix) + 1 :]
        return app(environ, start_response)


@dataclass
class Running:
    """A served devcloud. `http` sends raw requests as one of its users; `direct` does so without a socket."""

    cloud: Devcloud
    accounts: Accounts
    url: str
    compute: ComputeSink
    direct: DirectTransport
    tokens: dict[str, str] = field(default_factory=dict)
    http: requests.Session = field(default_factory=requests.Session)
    stop: Callable[[], None] = lambda: None

    def token(self, user: str) -> str:
        if user not in self.tokens:
            self.tokens[user] = self.login(user, self.accounts[user].password).headers["X-Subject-Token"]
        return self.tokens[user]

    def login(self, user: str, password: str, scoped: bool = True) -> requests.Response:
        domain = {"domain": {"id": "default"}}
        auth: dict[str, Any] = {
            "identity": {"methods": ["password"], "password": {"user": {"name": user, "password": password, **domain}}}
        }
        if scoped:
            auth["scope"] = {"project": {"name": self.accounts[user].project_name, **domain}}
        return self.http.post(f"{self.url}/identity/v3/auth/tokens", json={"auth": auth}, timeout=20)

    def call(self, method: str, path: str, body: Any = None, user: str = "causeway", **more: Any) -> requests.Response:
        headers = {"X-Auth-Token": self.token(user), "OpenStack-API-Version": "volume 3.71", **more.pop("headers", {})}
        return self.http.request(method, self.url + path, json=body, headers=headers, timeout=20, **more)

    def ok(self, method: str, path: str, body: Any = None, user: str = "causeway", **more: Any) -> Any:
        reply = self.call(method, path, body, user, **more)
        assert reply.status_code < 300, f"{method} {path}: {reply.status_code} {reply.text}"
        return reply.json() if reply.content else None

    def project(self, user: str) -> str:
        reply = self.call("GET", "/identity/v3/auth/projects", user=user).json()
        return next(row["id"] for row in reply["projects"] if row["name"] == self.accounts[user].project_name)

    def sdk(self, user: str) -> openstack.connection.Connection:
        return openstack.connection.Connection(**self._login(user), region_name="RegionOne", app_name="tests")

    def _login(self, user: str) -> dict[str, Any]:
        account = self.accounts[user]
        return {
            "auth_url": self.accounts.auth_url,
            "username": account.username,
            "password": account.password,
            "project_name": account.project_name,
            "user_domain_id": "default",
            "project_domain_id": "default",
        }

    def cli(self, user: str, *arguments: str) -> str:
        """Runs the unmodified `openstack` client and returns what it prints."""
        environment = {f"OS_{name.upper()}": value for name, value in self._login(user).items()}
        environment |= {"OS_IDENTITY_API_VERSION": "3", "OS_REGION_NAME": "RegionOne"}
        client = str(Path(sys.executable).with_name("openstack"))
        done = subprocess.run(
            [client, *arguments], env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"openstack {' '.join(arguments)}: {done.stderr}"
        return done.stdout.strip()


Start = Callable[..., Running]


@pytest.fixture(scope="module")
def start_devcloud() -> Iterator[Start]:
    """Starts a devcloud on a state directory; all are stopped at the end. `stop` on the result stops one earlier."""
    stops: list[Callable[[], None]] = []

    def start(state_dir: Path) -> Running:
        dispatcher, compute = Dispatcher(), ComputeSink()
        server = wsgi.Server(("127.0.0.1", 0), dispatcher, numthreads=8)
        server.error_log = lambda *_args, **_more: None  # type: ignore[method-assign]
        server.prepare()
        url = f"http://127.0.0.1:{server.bind_addr[1]}"
        cloud = Devcloud(DevcloudConfig(state_dir, url))
        accounts = cloud.bootstrap()
        cloud.register_hosts(HOSTS)
        dispatcher.apps = {**cloud.apps, "/compute": compute}
        thread = threading.Thread(target=server.serve, name="test-server")
        thread.start()
        running = Running(cloud, accounts, url, compute, DirectTransport(dispatcher))

        def stop() -> None:
            if stop in stops:
                stops.remove(stop)
                running.http.close()
                cloud.faults.clear()
                server.stop()
                thread.join(10)
                cloud.close()

        running.stop = stop
        stops.append(stop)
        return running

    yield start
    for stop in list(stops):
        stop()


@pytest.fixture(scope="module")
def shared(start_devcloud: Start, tmp_path_factory: pytest.TempPathFactory) -> Running:
    return start_devcloud(tmp_path_factory.mktemp("devcloud"))


@pytest.fixture(scope="module")
def demo(shared: Running) -> Any:
    return shared.sdk("demo")


@pytest.fixture(scope="module")
def other(shared: Running) -> Any:
    return shared.sdk("other")


@pytest.fixture(scope="module")
def admin(shared: Running) -> Any:
    return shared.sdk("admin")


@pytest.fixture
def devcloud(shared: Running) -> Iterator[Running]:
    """The module's devcloud, with switches and faults as they are at first after every test."""
    yield shared
    shared.cloud.faults.clear()
    shared.cloud.plug_delay = 0.0
    shared.cloud.unpluggable_hosts = set()
    (shared.cloud.config.state_dir / "devcloud-switches.yaml").unlink(missing_ok=True)
    shared.cloud.on_ports_changed = None
    shared.compute.failures = 0

"""The whole way in: tokens of an Identity service, keystonemiddleware in front, the unmodified client and SDK."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any
from wsgiref.util import setup_testing_defaults

import openstack
import pytest
import requests
from cheroot import wsgi
from oslo_utils import timeutils

from causeway.api import auth
from causeway.api.app import build_app
from causeway.api.remembered_tokens import RememberedTokens
from causeway.devcloud import Accounts, Devcloud, DevcloudConfig


@dataclass
class Served:
    url: str
    accounts: Accounts

    def login(self, user: str) -> dict[str, Any]:
        account = self.accounts[user]
        return {
            "auth_url": self.accounts.auth_url,
            "username": account.username,
            "password": account.password,
            "project_name": account.project_name,
            "user_domain_id": "default",
            "project_domain_id": "default",
        }

    def sdk(self, user: str) -> openstack.connection.Connection:
        return openstack.connection.Connection(**self.login(user), region_name="RegionOne", app_name="tests")

    def revoke(self, token: str) -> None:
        headers = {"X-Auth-Token": token, "X-Subject-Token": token}
        requests.delete(f"{self.accounts.auth_url}/auth/tokens", headers=headers, timeout=20).raise_for_status()

    def openstack(self, user: str, *arguments: str) -> str:
        environment = {f"OS_{name.upper()}": value for name, value in self.login(user).items()}
        environment |= {"OS_IDENTITY_API_VERSION": "3", "OS_REGION_NAME": "RegionOne"}
        client = str(Path(sys.executable).with_name("openstack"))
        command = [client, "--os-compute-api-version", "2.96", *arguments]
        done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{' '.join(arguments)}: {done.stderr}"
        return done.stdout.strip()


@pytest.fixture
def served(cloud: Any, tmp_path: Path) -> Iterator[Served]:
    """The API behind keystonemiddleware at /compute, and an Identity service, on one free port."""
    apps: dict[str, Any] = {}

    def dispatch(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        prefix, _slash, rest = environ["PATH_INFO"].lstrip("/").partition("/")
        environ["SCRIPT_NAME"], environ["PATH_INFO"] = f"/{prefix}", f"/{rest}"
        answer: Iterable[bytes] = apps[f"/{prefix}"](environ, start_response)
        return answer

    server = wsgi.Server(("127.0.0.1", 0), dispatch, numthreads=4)
    server.prepare()
    url = f"http://127.0.0.1:{server.bind_addr[1]}"
    devcloud = Devcloud(DevcloudConfig(tmp_path / "devcloud", url))
    accounts = devcloud.bootstrap()
    apps |= devcloud.apps
    options = {
        "www_authenticate_uri": accounts.auth_url,
        "auth_url": accounts.auth_url,
        "auth_type": "password",
        "username": "causeway",
        "password": accounts["causeway"].password,
        "project_name": "service",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    file = tmp_path / "causeway.conf"
    lines = [f"{name} = {value}" for name, value in options.items()]
    file.write_text("\n".join(["[api]", "auth_strategy = keystone", "[keystone_authtoken]", *lines]))
    cloud.services.conf.clear_override("auth_strategy", group="api")
    cloud.services.conf([], project="causeway-test", default_config_files=[str(file)], default_config_dirs=[])
    apps["/compute"] = build_app(cloud.services)
    thread = threading.Thread(target=server.serve, name="api")
    thread.start()
    yield Served(url, accounts)
    server.stop()
    thread.join()
    devcloud.close()


def test_without_a_good_token_it_is_401(served: Served) -> None:
    for headers in ({}, {"X-Auth-Token": "forged"}):
        answer = requests.get(f"{served.url}/compute/v2.1/flavors", headers=headers, timeout=20)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Keystone uri=")
        assert answer.headers["X-Compute-Request-Id"].startswith("req-")
    assert requests.get(f"{served.url}/compute/", timeout=20).json()["versions"][1]["id"] == "v2.1"


def status_of(app: auth.WsgiApp, token: str) -> str:
    """What ``GET /flavors`` answers."""
    answered: list[str] = []
    environ: dict[str, Any] = {"PATH_INFO": "/v2.1/flavors", "HTTP_X_AUTH_TOKEN": token}
    setup_testing_defaults(environ)
    b"".join(app(environ, lambda status, *_headers: answered.append(status[:3])))
    return answered[0]


def test_headers_that_only_the_middleware_may_set_are_not_believed(served: Served) -> None:
    """Neither at a token's first request nor when it is remembered."""
    token = served.sdk("demo").auth_token
    forged = {"X-Roles": "admin", "X-User-Id": "root", "X-Project-Id": "other", "OpenStack-System-Scope": "all"}
    for _request in range(2):
        answer = requests.get(
            f"{served.url}/compute/v2.1/os-services", headers={"X-Auth-Token": token} | forged, timeout=20
        )
        assert answer.status_code == 403
        answer = requests.get(
            f"{served.url}/compute/v2.1/flavors", headers={"X-Auth-Token": token} | forged, timeout=20
        )
        assert answer.status_code == 200


def test_a_revoked_token_is_let_through_for_no_longer_than_it_may_be_cached(
    served: Served, cloud: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Remembered here and by keystonemiddleware, one after the other, asked for all the time."""
    seconds, began = [0.0], timeutils.utcnow()
    monkeypatch.setattr(auth, "RememberedTokens", partial(RememberedTokens, clock=lambda: seconds[0]))
    cloud.services.conf.set_override("token_cache_time", 10, group="keystone_authtoken")
    app = build_app(cloud.services)
    token = served.sdk("demo").auth_token

    def ask(at: float) -> str:
        seconds[0] = at
        timeutils.set_time_override(began + timedelta(seconds=at))
        return status_of(app, token)

    try:
        assert ask(0.0) == "200"
        served.revoke(token)
        assert ask(1.0) == "200"
        assert [ask(at) for at in (3.0, 4.9, 5.1, 7.0, 9.9, 10.0)][-1] == "401"
    finally:
        timeutils.clear_time_override()
        cloud.services.conf.clear_override("token_cache_time", group="keystone_authtoken")


def test_who_caches_no_tokens_hears_of_a_revoked_one_at_once(served: Served, cloud: Any) -> None:
    cloud.services.conf.set_override("token_cache_time", -1, group="keystone_authtoken")
    try:
        app = build_app(cloud.services)
    finally:
        cloud.services.conf.clear_override("token_cache_time", group="keystone_authtoken")
    token = served.sdk("demo").auth_token
    assert status_of(app, token) == "200"
    served.revoke(token)
    assert status_of(app, token) == "401"


def test_the_sdk_finds_its_way(served: Served, cloud: Any) -> None:
    cloud.host("host1")
    admin = served.sdk("admin")
    flavor = admin.compute.create_flavor(name="small", vcpus=1, ram=128, disk=1)
    assert [found.name for found in served.sdk("demo").compute.flavors()] == ["small"]
    assert admin.compute.get_flavor(flavor.id).vcpus == 1
    assert [service.host for service in admin.compute.services()] == ["host1"]
    assert [hypervisor.name for hypervisor in admin.compute.hypervisors()] == ["host1"]
    aggregate = admin.compute.create_aggregate(name="gen1")
    admin.compute.add_host_to_aggregate(aggregate, "host1")
    admin.compute.set_aggregate_metadata(aggregate, {"gen": "1"})
    assert admin.compute.get_aggregate(aggregate).hosts == ["host1"]
    with pytest.raises(openstack.exceptions.ForbiddenException):
        served.sdk("demo").compute.create_flavor(name="other", vcpus=1, ram=128, disk=1)
    with pytest.raises(openstack.exceptions.NotFoundException, match="Flavor nothing could not be found"):
        admin.compute.get_flavor("nothing")


@pytest.mark.long
def test_the_openstack_client_does_too(served: Served, cloud: Any) -> None:
    cloud.host("host1")
    served.openstack("admin", "flavor", "create", "--ram", "128", "--disk", "1", "--vcpus", "1", "gen1.small")
    served.openstack("admin", "flavor", "set", "--property", "aggregate_instance_extra_specs:gen=1", "gen1.small")
    assert "'aggregate_instance_extra_specs:gen': '1'" in served.openstack(
        "admin", "flavor", "show", "-f", "value", "-c", "properties", "gen1.small"
    )
    served.openstack("admin", "aggregate", "create", "--property", "gen=1", "gen1")
    served.openstack("admin", "aggregate", "add", "host", "gen1", "host1")
    assert served.openstack("admin", "compute", "service", "list", "-f", "value", "-c", "Host") == "host1"
    assert served.openstack("admin", "hypervisor", "list", "-f", "value", "-c", "State") == "up"
    served.openstack("demo", "server", "group", "create", "--policy", "anti-affinity", "apart")
    assert "apart" in served.openstack("demo", "server", "group", "list")
    # With a later version the client sends a parameter that no API takes there.
    assert "20" in served.openstack(
        "demo", "--os-compute-api-version", "2.74", "limits", "show", "--absolute", "-f", "value"
    )
    assert served.openstack("admin", "server", "migration", "list") == ""
    assert "nova" in served.openstack("demo", "availability", "zone", "list", "--compute")

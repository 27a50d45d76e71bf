"""``causeway devcloud``: only the services around Compute, over HTTP, for roles in processes of their own."""

from __future__ import annotations

import configparser
import io
import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import click

from causeway import durable, errors
from causeway.cli import machine_failures
from causeway.cli.ready import say_ready
from causeway.conf import AUTH_GROUPS
from causeway.devcloud import Account, Devcloud, DevcloudConfig
from causeway.embedded.lock import StateDirLock
from causeway.embedded.placement.local import local_placement
from causeway.embedded.settings import StateDir
from causeway.embedded.web import WebServer


@click.command()
@click.option(
    "--state-dir", type=click.Path(path_type=Path, file_okay=False), required=True, help="Where everything is stored."
)
@click.option("--port", default=8775, show_default=True, help="Port of all services; 0 picks a free one.")
@click.option(
    "--host", "hosts", multiple=True, help="A compute host that ports can be bound to; give it once for each."
)
@click.option(
    "--compute-url",
    default="http://127.0.0.1:8774/v2.1",
    show_default=True,
    help="Where `causeway api` is, for the catalog.",
)
def devcloud(state_dir: Path, port: int, hosts: tuple[str, ...], compute_url: str) -> None:
    """Run small stand-ins for Identity, Image, Network and Block Storage, and the real Placement, for trials and tests.

    Prints "ready: URL". Writes STATE_DIR/clouds.yaml for `openstack`, STATE_DIR/services.conf with what roles need to
    reach the services (give it to them with --config-file), STATE_DIR/services-compute.conf with the same for computes, whose
    account is no administrator, and STATE_DIR/policy.yaml, which lets members of a project move their servers across cells.
    """
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    state = StateDir(state_dir.resolve())
    with machine_failures.reported(state.path), ExitStack() as cleanup:
        state.prepare()
        try:
            cleanup.callback(StateDirLock(state.path).release)
        except errors.Misconfigured as failure:
            raise click.ClickException(failure.message) from failure
        web = WebServer(port)
        # If it is never started: its threads would keep the process alive.
        cleanup.callback(web.stop)
        cloud = Devcloud(DevcloudConfig(state.devcloud, web.url, compute_url=compute_url))
        cleanup.callback(cloud.close)
        accounts = cloud.bootstrap()
        cloud.register_hosts(hosts)
        placement = local_placement(state.database("placement"))
        cleanup.callback(placement.close)
        placement_app = placement.public_app(_credentials(accounts["placement"], accounts.auth_url))
        web.mount("/placement", cloud.faults.wrap("placement", placement_app))
        for prefix, app in cloud.apps.items():
            web.mount(prefix, app)
        web.start()
        cleanup.callback(web.stop)
        users = {"causeway": accounts["demo"], "causeway-admin": accounts["admin"]}
        state.write_clouds(
            accounts.auth_url,
            {name: (user.username, user.password, user.project_name) for name, user in users.items()},
        )
        _write_services(state, "services.conf", _credentials(accounts["causeway"], accounts.auth_url))
        # Whoever owns a host has its account: it is no administrator.
        _write_services(state, "services-compute.conf", _credentials(accounts["causeway-compute"], accounts.auth_url))
        say_ready(web.url)
        stop.wait()


def _credentials(account: Account, auth_url: str) -> dict[str, str]:
    return {
        "auth_type": "password",
        "auth_url": auth_url,
        "www_authenticate_uri": auth_url,
        "username": account.username,
        "password": account.password,
        "project_name": account.project_name,
        "user_domain_id": account.domain_id,
        "project_domain_id": account.domain_id,
    }


def _write_services(state: StateDir, name: str, credentials: dict[str, str]) -> None:
    """Writes a file in the state directory, with which roles reach the services."""
    written = configparser.ConfigParser(interpolation=None)
    written["keystone_authtoken"] = credentials
    for group in AUTH_GROUPS:
        written[group] = {name: value for name, value in credentials.items() if name != "www_authenticate_uri"}
    written["service_user"]["send_service_user_token"] = "true"
    written["oslo_policy"] = {"policy_file": str(state.policy)}
    path = state.path / name
    text = io.StringIO()
    written.write(text)
    durable.write(path, text.getvalue(), mode=0o600)

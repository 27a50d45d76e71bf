"""Asks a running cloud over its API, as an administrator, for commands that need what only the cloud can reach."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from causeway.cli.state_dirs import CLOUDS, DEFAULT_STATE_DIR
from causeway.openstack_plugin import asking
from causeway.openstack_plugin import wanted as asked_for

ADMIN_CLOUD = "causeway-admin"


state_dir_option = click.option(
    "--state-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=DEFAULT_STATE_DIR,
    show_default=True,
    help="The state directory of a cloud that `causeway up` runs.",
)
os_cloud_option = click.option(
    "--os-cloud", help="An administrator's cloud of clouds.yaml, for a cloud of many processes."
)
json_option = click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
timeout_option = click.option("--timeout", default=120.0, show_default=True, help="Seconds to wait for the answer.")


class NotAsked(click.ClickException):
    """The cloud could not be asked."""

    exit_code = 2


class Refused(NotAsked):
    """The cloud answered, and refused."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"The cloud refused ({status}): {message}")
        self.status = status
        self.reason = message


def connect(state_dir: Path, os_cloud: str | None) -> Any:
    """An openstacksdk connection: to the cloud of a state directory, or to one of clouds.yaml. Raises NotAsked."""
    import openstack
    from keystoneauth1 import exceptions as keystone_errors
    from openstack.config import OpenStackConfig

    files = None
    if os_cloud is None:
        clouds = state_dir / CLOUDS
        if not clouds.exists():
            raise NotAsked(f"There is no cloud in {state_dir}: give --state-dir or --os-cloud.")
        files = [str(clouds)]
    try:
        config = OpenStackConfig(config_files=files, load_envvars=files is None)
        return openstack.connection.Connection(config=config.get_one(cloud=os_cloud or ADMIN_CLOUD))
    except openstack.exceptions.ConfigException as failure:
        raise NotAsked(_not_configured(failure, os_cloud)) from failure
    except (openstack.exceptions.SDKException, keystone_errors.ClientException) as failure:
        raise NotAsked(str(asking.unreachable(failure))) from failure


def _not_configured(failure: Exception, os_cloud: str | None) -> str:
    """Why clouds.yaml does not say how to reach a cloud."""
    import openstack
    from openstack.config import OpenStackConfig

    try:
        config = OpenStackConfig()
    except openstack.exceptions.ConfigException:
        return f"clouds.yaml can't be used: {failure}"
    known = sorted({*config.get_cloud_names()} - {"envvars"})
    if os_cloud is None or os_cloud in known:
        return f"clouds.yaml can't be used: {failure}"
    return (
        f"There is no cloud {os_cloud} in {config.config_filename or 'clouds.yaml'}, which has {', '.join(known) or 'none'}."
        " OS_CLIENT_CONFIG_FILE says where clouds.yaml is."
    )


def ask(
    connection: Any, path: str, *, timeout: float, method: str = "GET", body: Any = None, **query: str | None
) -> Any:
    """The body of an answer. Raises NotAsked if there is no answer, Refused with what the API says if it refuses."""
    with _failures_reported():
        return asking.ask(connection.compute, path, method=method, body=body, query=query, timeout=timeout)


def pages(connection: Any, path: str, key: str, *, timeout: float, **query: Any) -> list[dict[str, Any]]:
    """The entries of all pages of a list. Raises as `ask` does."""
    with _failures_reported():
        return list(asking.pages(connection.compute, path, key, query, timeout=timeout))


def id_of_server(connection: Any, wanted: str, timeout: float) -> str:
    """The id of a server by its name or id. Raises NotAsked if none or several have the name."""
    with _failures_reported():
        return asking.id_of_server(connection.compute, wanted, timeout=timeout)


def operation(connection: Any, wanted: str, timeout: float) -> dict[str, Any] | None:
    """The operation with this id; None if it is no operation's. Raises NotAsked."""
    with _failures_reported():
        return asked_for.operation(connection.compute, wanted, timeout=timeout)


def operation_at_work(connection: Any, wanted: str, timeout: float) -> dict[str, Any] | None:
    """The operation with this id, or what is being done with this server; None if that is nothing. Raises NotAsked."""
    with _failures_reported():
        try:
            return asked_for.at_work(connection.compute, wanted, timeout=timeout)
        except asked_for.NothingToDo:
            return None


def id_of_flavor(connection: Any, wanted: str, timeout: float) -> str:
    """The id of a flavor, as `id_of_server`."""
    with _failures_reported():
        return asking.id_of_flavor(connection.compute, wanted, timeout=timeout)


def id_of(connection: Any, path: str, key: str, wanted: str, timeout: float) -> str:
    """The id of an entry of one of our own lists, by its name or id. Raises NotAsked."""
    with _failures_reported():
        return asking.id_of(connection.compute, path, key, wanted, timeout=timeout)


def id_of_project(connection: Any, wanted: str) -> str:
    """The id of a project by its name or id. Raises NotAsked if there is none."""
    import openstack
    from keystoneauth1 import exceptions as keystone_errors

    try:
        found = connection.identity.find_project(wanted)
    except (openstack.exceptions.SDKException, keystone_errors.ClientException) as failure:
        raise NotAsked(str(asking.unreachable(failure))) from failure
    if found is None:
        raise NotAsked(f"There is no project {wanted}.")
    return str(found.id)


@contextmanager
def _failures_reported() -> Iterator[None]:
    """Turns failures into errors of the command."""
    try:
        yield
    except asking.Refused as refusal:
        raise Refused(refusal.status, refusal.message) from refusal
    except asking.NotAsked as failure:
        raise NotAsked(str(failure)) from failure

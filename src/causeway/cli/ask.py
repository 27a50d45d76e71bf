"""Asks a running cloud over its API, as an administrator: for commands that need to know what only it can reach."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from causeway.embedded.settings import StateDir

ADMIN_CLOUD = "causeway-admin"


class NotAsked(click.ClickException):
    """Nothing can be said of the cloud."""

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
        clouds = StateDir(state_dir).clouds
        if not clouds.exists():
            raise NotAsked(f"There is no cloud in {state_dir}: give --state-dir or --os-cloud.")
        files = [str(clouds)]
    try:
        config = OpenStackConfig(config_files=files, load_envvars=files is None)
        return openstack.connection.Connection(config=config.get_one(cloud=os_cloud or ADMIN_CLOUD))
    except (openstack.exceptions.SDKException, keystone_errors.ClientException) as failure:
        raise unreachable(failure) from failure


def ask(
    connection: Any, path: str, *, timeout: float, method: str = "GET", body: Any = None, **query: str | None
) -> Any:
    """The body of an answer. Raises NotAsked if there is no answer, Refused with what the API says if it refuses."""
    import openstack
    from keystoneauth1 import exceptions as keystone_errors

    given = {name: value for name, value in query.items() if value is not None}
    sent = {} if body is None else {"json": body}
    try:
        answer = connection.compute.request(path, method, params=given, timeout=timeout, raise_exc=False, **sent)
    except (openstack.exceptions.SDKException, keystone_errors.ClientException) as failure:
        raise unreachable(failure) from failure
    said: dict[str, Any] = answer.json() if answer.content else {}
    if answer.status_code >= 300:
        message = next((value.get("message", "") for value in said.values() if isinstance(value, dict)), "")
        raise Refused(answer.status_code, message)
    return said


def id_of_server(connection: Any, wanted: str, timeout: float) -> str:
    """The id of a server by its name or id. Raises NotAsked."""
    return id_of(connection, "servers", wanted, timeout, all_tenants="1", name=f"^{re.escape(wanted)}$")


def id_of_project(connection: Any, wanted: str) -> str:
    """The id of a project by its name or id. Raises NotAsked if there is none."""
    import openstack
    from keystoneauth1 import exceptions as keystone_errors

    try:
        found = connection.identity.find_project(wanted)
    except (openstack.exceptions.SDKException, keystone_errors.ClientException) as failure:
        raise unreachable(failure) from failure
    if found is None:
        raise NotAsked(f"There is no project {wanted}.")
    return str(found.id)


def id_of(connection: Any, kind: str, wanted: str, timeout: float, **query: str) -> str:
    """The id of a server or flavor of this name; what is no name is taken for an id. Raises NotAsked if names are many."""
    listed = ask(connection, f"/{kind}", timeout=timeout, **query)[kind]
    if any(each["id"] == wanted for each in listed):
        return wanted
    ids = [str(each["id"]) for each in listed if each.get("name") == wanted]
    if len(ids) > 1:
        raise NotAsked(f"There are {len(ids)} {kind} named {wanted}: give an id ({', '.join(ids)}).")
    return ids[0] if ids else wanted


def unreachable(failure: Exception) -> NotAsked:
    return NotAsked(f"The cloud could not be asked. Does it run? {failure}")

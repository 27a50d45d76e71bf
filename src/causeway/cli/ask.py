"""Asks a running cloud over its API, as an administrator: for commands that need to know what only it can reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from causeway.embedded.settings import StateDir

ADMIN_CLOUD = "causeway-admin"


class NotAsked(click.ClickException):
    """Nothing can be said of the cloud."""

    exit_code = 2


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


def ask(connection: Any, path: str, *, timeout: float, method: str = "GET", **query: str | None) -> Any:
    """The body of an answer. Raises NotAsked if there is none, or with what the API says if it refuses."""
    import openstack
    from keystoneauth1 import exceptions as keystone_errors

    given = {name: value for name, value in query.items() if value is not None}
    try:
        answer = connection.compute.request(path, method, params=given, timeout=timeout, raise_exc=False)
    except (openstack.exceptions.SDKException, keystone_errors.ClientException) as failure:
        raise unreachable(failure) from failure
    body: dict[str, Any] = answer.json()
    if answer.status_code != 200:
        message = next((value.get("message", "") for value in body.values() if isinstance(value, dict)), "")
        raise NotAsked(f"The cloud refused ({answer.status_code}): {message}")
    return body


def unreachable(failure: Exception) -> NotAsked:
    return NotAsked(f"The cloud could not be asked. Does it run? {failure}")

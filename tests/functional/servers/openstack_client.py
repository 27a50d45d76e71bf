"""The real ``openstack`` client, as an administrator runs it: a process of its own, with the plug-in that is installed.

Most of its time is spent on imports, which commands share: see `tests.preloaded`. With ``anew`` the installed program starts
and imports them by itself; each file of tests has one such command.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.functional.servers.moves_cloud import Cloud
from tests.preloaded.commands import Command, Program

SCRIPT = Path(sys.executable).with_name("openstack")
# The client, whatever the command, loads all commands of its plug-ins, all ways to log in and all formats.
CLIENT = Program(SCRIPT, "openstackclient.shell", r"openstack\..*|keystoneauth1\.plugin|cliff\.formatter\..*")
atexit.register(CLIENT.stop)


def started(cloud: Cloud, *words: str, user: str = "causeway-admin") -> Command:
    """It runs."""
    return CLIENT.started(*words, environment=_environment(cloud, user))


def ended(process: Command | subprocess.Popen[str], status: int = 0) -> tuple[str, str]:
    """What it wrote, and what it said beside that. ``status``: that it has to end with."""
    try:
        written, said = process.communicate(timeout=100)
    finally:
        process.kill()
    assert process.returncode == status, f"{process.returncode}: {said}\n{written}"
    return written, said


def openstack(
    cloud: Cloud, *words: str, status: int = 0, user: str = "causeway-admin", anew: bool = False
) -> tuple[str, str]:
    """Runs it to its end: see `ended`."""
    if not anew:
        return ended(started(cloud, *words, user=user), status)
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return ended(subprocess.Popen([SCRIPT, *words], env=_environment(cloud, user), text=True, **pipes), status)


def listed(cloud: Cloud, *words: str, status: int = 0, anew: bool = False) -> Any:
    """Its answer as scripts get it."""
    return json.loads(openstack(cloud, *words, "-f", "json", status=status, anew=anew)[0])


def _environment(cloud: Cloud, user: str) -> dict[str, str]:
    return os.environ | {"OS_CLIENT_CONFIG_FILE": str(cloud.parts.state.clouds), "OS_CLOUD": user}

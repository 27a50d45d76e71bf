"""The real ``openstack`` client, as an administrator runs it: a process of its own, with the plug-in that is installed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.functional.servers.moves_cloud import Cloud


def started(cloud: Cloud, *words: str, user: str = "causeway-admin") -> subprocess.Popen[str]:
    """It runs."""
    return subprocess.Popen(
        [Path(sys.executable).with_name("openstack"), *words],
        env=os.environ | {"OS_CLIENT_CONFIG_FILE": str(cloud.parts.state.clouds), "OS_CLOUD": user},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended(process: subprocess.Popen[str], status: int = 0) -> tuple[str, str]:
    """What it wrote, and what it said beside that. ``status``: that it has to end with."""
    try:
        written, said = process.communicate(timeout=100)
    finally:
        process.kill()
    assert process.returncode == status, f"{process.returncode}: {said}\n{written}"
    return written, said


def openstack(cloud: Cloud, *words: str, status: int = 0, user: str = "causeway-admin") -> tuple[str, str]:
    """Runs it to its end: see `ended`."""
    return ended(started(cloud, *words, user=user), status)


def listed(cloud: Cloud, *words: str, status: int = 0) -> Any:
    """Its answer as scripts get it."""
    return json.loads(openstack(cloud, *words, "-f", "json", status=status)[0])

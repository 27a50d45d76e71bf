"""Identity, Image, Network and Block Storage are killed while they work on requests of moves, and are there again a little later.

devcloud is all of them, and a process of its own. It holds each request at a point of the batch: before it is carried out
(``.request``), or when it is and nobody knows yet (``.reply``). While all of them are held it gets SIGKILL.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import yaml

from tests.faults.clouds.roles_site import RolesSite

ACTION = "service-killed"
DEVCLOUD = "devcloud"
SERVICES = ("identity", "image", "network", "volume")
# Seconds without anything new after which what was not reached is not on the way.
QUIET = 5.0
LONG = 3600
_POINT = re.compile(rf"call\.({'|'.join(SERVICES)}) (\w+) (\S+)\.(request|reply)")


def concerns(point: str) -> bool:
    """Whether it is a call of one of these services."""
    return _POINT.fullmatch(point) is not None


def arm(site: RolesSite, points: list[str]) -> None:
    """From now on the first request of each point is held."""
    _hits(site).unlink(missing_ok=True)
    new = _faults(site).with_suffix(".new")
    new.write_text(yaml.safe_dump([_rule(point) for point in points]))
    new.replace(_faults(site))


def kill(site: RolesSite, points: list[str]) -> list[dict[str, Any]]:
    """When all are held, or nothing has been held for a while. Returns the hits; of none of them it is known whose they are."""
    last, since = 0, time.monotonic()
    while time.monotonic() - since < QUIET and len(_held(site)) < len(points):
        if len(_held(site)) > last:
            last, since = len(_held(site)), time.monotonic()
        time.sleep(0.02)
    held = _held(site)
    site.deployment.processes[DEVCLOUD].kill()
    _faults(site).unlink()
    site.deployment.restart(DEVCLOUD).wait_ready()
    taken = [point for point in points if any(_is_at(line, point) for line in held)]
    return [{"point": point, "move": None, "request": None} for point in taken]


def _faults(site: RolesSite) -> Path:
    return site.state.devcloud / "devcloud-faults.yaml"


def _hits(site: RolesSite) -> Path:
    return _faults(site).with_name(f"{_faults(site).name}.hits")


def _held(site: RolesSite) -> list[str]:
    return _hits(site).read_text().splitlines() if _hits(site).exists() else []


def _parts(point: str) -> tuple[str, str, str, str]:
    """Service, method, the path as a regular expression, and what devcloud does with it."""
    found = _POINT.fullmatch(point)
    assert found is not None, point
    service, method, path, side = found.groups()
    pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))
    if service == "volume":
        # Where it stands in the catalog names the project.
        pattern = pattern.replace("/v3/", "/v3/(?:[0-9a-f]{32}/)?", 1)
    return service, method, f"^{pattern}$", {"request": "delay", "reply": "delay_reply"}[side]


def _rule(point: str) -> dict[str, Any]:
    service, method, path, action = _parts(point)
    return {"service": service, "method": method, "path": path, "action": action, "seconds": LONG, "times": 1}


def _is_at(line: str, point: str) -> bool:
    service, method, path, action = _parts(point)
    did, asked, where = line.split(" ", 2)
    return (did, asked) == (action, method) and re.search(path, where.removeprefix(service)) is not None

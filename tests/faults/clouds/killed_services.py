"""Services around are killed while they work on requests, and are there again a little later.

devcloud is all of them, Placement too, and a process of its own. It holds each request at a point of the batch: before it is
carried out (``.request``), when it is and nobody knows yet (``.reply``), or, if it is a write of Placement that takes two
transactions, between them (``.half``; `halfway`). While all of them are held it gets SIGKILL.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import yaml

from tests.faults.clouds.halfway import HALF, hits_in, rule_in
from tests.faults.clouds.roles_site import RolesSite

ACTION = "service-killed"
DEVCLOUD = "devcloud"
SERVICES = ("identity", "image", "network", "volume", "placement")
# Seconds without anything new after which what was not reached is not on the way.
QUIET = 5.0
LONG = 3600
_SIDES = {"request": "delay", "reply": "delay_reply", HALF: HALF}
_POINT = re.compile(rf"call\.({'|'.join(SERVICES)}) (\w+) (\S+)\.({'|'.join(_SIDES)})")
_TWO_TRANSACTIONS = re.compile(r"call\.placement (POST /allocations|(PUT|DELETE) /allocations/\S+)\.request")


def points(reached: list[str]) -> list[str]:
    """Those of what an operation reached at which one of these services can be killed, and those half way between two."""
    found = [point for point in reached if _POINT.fullmatch(point) is not None]
    halves = [f"{point.removesuffix('request')}{HALF}" for point in found if _TWO_TRANSACTIONS.fullmatch(point)]
    return [*found, *halves]


def is_half(point: str) -> bool:
    """Whoever stands there keeps all others from writing to Placement."""
    return point.endswith(f".{HALF}")


def arm(site: RolesSite, wanted: list[str]) -> None:
    """From now on the first request of each point is held, and what was held before stays so."""
    rule_in(site.state.path).unlink(missing_ok=True)
    for point in filter(is_half, wanted):
        _, method, path, _ = _parts(point)
        _write(rule_in(site.state.path), f"{method} {path}")
    _write(_faults(site), yaml.safe_dump([_rule(point) for point in wanted if not is_half(point)]))


def discard_hits(site: RolesSite) -> None:
    """Nothing was held before."""
    for hits in _hits(site):
        hits.unlink(missing_ok=True)


def kill(site: RolesSite, wanted: list[str]) -> list[dict[str, Any]]:
    """When all are held, or nothing has been held for a while. Returns the hits; of none of them it is known whose they are."""
    last, since = 0, time.monotonic()
    while time.monotonic() - since < QUIET and len(held(site)) < len(wanted):
        if len(held(site)) > last:
            last, since = len(held(site)), time.monotonic()
        time.sleep(0.02)
    taken = [point for point in wanted if held(site, point)]
    strike(site)
    return [{"point": point, "move": None, "request": None} for point in taken]


def strike(site: RolesSite) -> None:
    """As it stands. It is there again when this returns."""
    site.deployment.processes[DEVCLOUD].kill()
    for rule in (_faults(site), rule_in(site.state.path)):
        rule.unlink(missing_ok=True)
    site.deployment.restart(DEVCLOUD).wait_ready()


def held(site: RolesSite, point: str | None = None) -> list[str]:
    """Requests that are, or were, held: at a point, or at all."""
    lines = [line for hits in _hits(site) if hits.exists() for line in hits.read_text().splitlines()]
    return [line for line in lines if point is None or _is_at(line, point)]


def _faults(site: RolesSite) -> Path:
    return site.state.devcloud / "devcloud-faults.yaml"


def _hits(site: RolesSite) -> list[Path]:
    return [_faults(site).with_name(f"{_faults(site).name}.hits"), hits_in(site.state.path)]


def _write(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def _parts(point: str) -> tuple[str, str, str, str]:
    """Service, method, the path as a regular expression, and what devcloud does with it."""
    found = _POINT.fullmatch(point)
    assert found is not None, point
    service, method, path, side = found.groups()
    pattern = re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))
    if service == "volume":
        # Where it stands in the catalog names the project.
        pattern = pattern.replace("/v3/", "/v3/(?:[0-9a-f]{32}/)?", 1)
    return service, method, f"^{pattern}$", _SIDES[side]


def _rule(point: str) -> dict[str, Any]:
    service, method, path, action = _parts(point)
    return {"service": service, "method": method, "path": path, "action": action, "seconds": LONG, "times": 1}


def _is_at(line: str, point: str) -> bool:
    service, method, path, action = _parts(point)
    did, asked, where = line.split(" ", 2)
    return (did, asked) == (action, method) and re.search(path, where.removeprefix(service)) is not None

"""Requests for our own resources of the cloud's Compute API. ``compute``: openstacksdk's proxy of it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import tenacity

TIMEOUT = 120.0
# Seconds: how long a long poll waits at most, and the pause after one that came back too early with nothing new.
POLL, PAUSE = 50, 1.0
# How often, and how many seconds apart, a long poll is tried again while the API does not answer.
TRIES, BETWEEN_TRIES = 30, 2.0
GATEWAY_FAILURES = frozenset({502, 503, 504})

_UUID = re.compile("[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}")

Query = Mapping[str, Any]


class NotAsked(Exception):
    """The cloud could not be asked."""


class Refused(NotAsked):
    """The cloud answered, and refused."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"The cloud refused ({status}): {message}")
        self.status = status
        self.message = message


def ask(
    compute: Any,
    path: str,
    *,
    method: str = "GET",
    body: dict[str, Any] | None = None,
    query: Query | None = None,
    timeout: float = TIMEOUT,
) -> Any:
    """The body of an answer; parameters that are None are not sent. Raises NotAsked without an answer, Refused for an error."""
    import openstack
    from keystoneauth1 import exceptions as keystone_errors

    given = {name: value for name, value in (query or {}).items() if value is not None}
    more = {} if body is None else {"json": body}
    try:
        answer = compute.request(path, method, params=given, timeout=timeout, raise_exc=False, **more)
    except (openstack.exceptions.SDKException, keystone_errors.ClientException) as failure:
        raise unreachable(failure) from failure
    try:
        found = answer.json() if answer.content else {}
    except ValueError:
        # Not the API answered, but something in front of it.
        found = {}
    if answer.status_code >= 300:
        faults = (value for value in found.values() if isinstance(value, dict)) if isinstance(found, dict) else ()
        message = next((fault["message"] for fault in faults if "message" in fault), answer.reason)
        raise Refused(answer.status_code, str(message))
    return found


def unreachable(failure: Exception) -> NotAsked:
    return NotAsked(f"The cloud could not be asked. Does it run? {failure}")


def pages(
    compute: Any, path: str, key: str, query: Query | None = None, *, most: int | None = None, timeout: float = TIMEOUT
) -> Iterator[dict[str, Any]]:
    """The entries of all pages of a list, at most ``most``."""
    asked, left = dict(query or {}), most
    while left is None or left > 0:
        if left is not None:
            asked["limit"] = str(left)
        body = ask(compute, path, query=asked, timeout=timeout)
        yield from body[key][:left]
        links = [link["href"] for link in body.get(f"{key}_links", []) if link["rel"] == "next"]
        if not links:
            return
        left = None if left is None else left - len(body[key])
        asked["marker"] = parse_qs(urlsplit(links[0]).query)["marker"][-1]


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None


def id_of_server(compute: Any, wanted: str, *, timeout: float = TIMEOUT) -> str:
    """The id of a server by its name or id, in any project if the caller may look there.

    An unknown id is taken for that of a deleted server. Raises NotAsked if there is none of that name.
    """
    name = f"^{re.escape(wanted)}$"
    try:
        found = id_of(compute, "/servers", "servers", wanted, {"all_tenants": "1", "name": name}, timeout=timeout)
    except Refused as refusal:
        if refusal.status != 403:
            raise
        found = id_of(compute, "/servers", "servers", wanted, {"name": name}, timeout=timeout)
    if found == wanted and not _UUID.fullmatch(wanted):
        raise NotAsked(f"There is no server {wanted}.")
    return found


def id_of_flavor(compute: Any, wanted: str, *, timeout: float = TIMEOUT) -> str:
    return id_of(compute, "/flavors", "flavors", wanted, {"is_public": "None"}, timeout=timeout)


def id_of(
    compute: Any, path: str, key: str, wanted: str, query: Query | None = None, *, timeout: float = TIMEOUT
) -> str:
    """The id of the entry with this name. An unknown name is taken for an id. Raises NotAsked if several have the name."""
    if is_uuid(wanted):
        return wanted
    listed = list(pages(compute, path, key, query, timeout=timeout))
    if any(each["id"] == wanted for each in listed):
        return wanted
    ids = [str(each["id"]) for each in listed if each.get("name") == wanted]
    if len(ids) > 1:
        raise NotAsked(f"There are {len(ids)} {key} named {wanted}: give an id ({', '.join(ids)}).")
    return ids[0] if ids else wanted


def follow(compute: Any, operation_id: str) -> Iterator[dict[str, Any]]:
    """Yields an operation, and again whenever it has changed, until it has ended."""
    seen: str | None = None
    while True:
        began = time.monotonic()
        query = {} if seen is None else {"wait": str(POLL), "seen": seen}
        operation = _poll(compute, f"/os-causeway/operations/{operation_id}", query)
        if operation["version"] != seen:
            yield operation
        elif time.monotonic() - began < PAUSE:
            # Too many requests wait already, so the API answers at once.
            time.sleep(PAUSE)
        if operation["ended_at"] is not None:
            return
        seen = operation["version"]


def _passes(failure: BaseException) -> bool:
    """Whether the failure may pass: perhaps the API is being restarted."""
    if isinstance(failure, Refused):
        return failure.status in GATEWAY_FAILURES
    return isinstance(failure, NotAsked)


@tenacity.retry(
    retry=tenacity.retry_if_exception(_passes),
    stop=tenacity.stop_after_attempt(TRIES),
    wait=tenacity.wait_fixed(BETWEEN_TRIES),
    reraise=True,
)
def _poll(compute: Any, path: str, query: Query) -> dict[str, Any]:
    found: dict[str, Any] = ask(compute, path, query=query, timeout=POLL + TIMEOUT)["operation"]
    return found

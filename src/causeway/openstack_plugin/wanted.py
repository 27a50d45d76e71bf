"""Finds the operations that are meant by what people type: an operation's id, or a server's id or name."""

from __future__ import annotations

from typing import Any

from causeway.openstack_plugin import asking

# In these states an operation is not accepted yet, or was refused.
NOT_ACCEPTED = ("proposed", "refused")

Operation = dict[str, Any]


class NothingToDo(asking.NotAsked):
    """Nothing is being done with the server."""


def operation(compute: Any, wanted: str, *, timeout: float = asking.TIMEOUT) -> Operation | None:
    """The operation with this id; None if it is no operation's."""
    if not asking.is_uuid(wanted):
        return None
    try:
        found: Operation = asking.ask(compute, f"/os-causeway/operations/{wanted}", timeout=timeout)["operation"]
    except asking.Refused as refusal:
        if refusal.status != 404:
            raise
        return None
    return found


def at_work(compute: Any, wanted: str, *, timeout: float = asking.TIMEOUT) -> Operation:
    """The operation with this id, or what is being done with this server. Raises NothingToDo, and NotAsked."""
    if (found := operation(compute, wanted, timeout=timeout)) is not None:
        return found
    accepted = [each for each in _of_server(compute, wanted, timeout) if each["state"] not in NOT_ACCEPTED]
    if not accepted:
        raise NothingToDo(f"Nothing is being done with server {wanted}.")
    # The oldest one: others wait for its end.
    return accepted[-1]


def at_work_or_last(compute: Any, wanted: str, *, timeout: float = asking.TIMEOUT) -> Operation:
    """As `at_work`; if nothing is being done with the server, what was done last."""
    try:
        return at_work(compute, wanted, timeout=timeout)
    except NothingToDo:
        ended = _of_server(compute, wanted, timeout, all="1", most=1)
        if not ended:
            raise NothingToDo(f"The journal knows no operation of server {wanted}.") from None
        return ended[0]


def _of_server(compute: Any, wanted: str, timeout: float, *, most: int | None = None, **query: str) -> list[Operation]:
    """Newest first."""
    server = asking.id_of_server(compute, wanted, timeout=timeout)
    path = f"/os-causeway/servers/{server}/operations"
    try:
        return list(asking.pages(compute, path, "operations", query, most=most, timeout=timeout))
    except asking.Refused as refusal:
        if refusal.status != 404:
            raise
        raise asking.NotAsked(f"There is neither an operation nor a server {wanted}.") from refusal

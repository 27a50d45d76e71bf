"""What a Placement that is killed leaves: its own handlers run, and end between two of their transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from placement.handlers import allocation as handlers
from placement.objects import allocation, consumer

from causeway.clients.placement import PlacementClient
from causeway.clients.placement.types import Allocations


class Killed(BaseException):
    """No handler of errors runs in a process that is killed."""


@contextmanager
def _killed_at(place: object, name: str) -> Iterator[None]:
    def die(*_arguments: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch, pytest.raises(Killed):
        patch.setattr(place, name, die)
        yield


def half_write(client: PlacementClient, consumer_uuid: str, wanted: Allocations, project: str = "project") -> None:
    """A claim's consumer was committed, its allocations were not."""
    with _killed_at(allocation, "replace_all"):
        client.claim(consumer_uuid, wanted, project, "user")


def half_move(client: PlacementClient, server: str, migration: str, target: Allocations, source: str) -> None:
    """A move's migration was committed as a consumer, its allocations were not."""
    with _killed_at(allocation, "replace_all"):
        client.claim_for_move(server, migration, target, "project", "user", source_provider=source)


def half_delete(client: PlacementClient, consumer_uuid: str) -> None:
    """The allocations were deleted, their consumer was not."""
    with _killed_at(consumer, "delete_consumers_if_no_allocations"):
        client.delete_allocations(consumer_uuid)


@contextmanager
def next_write_dies() -> Iterator[list[str]]:
    """The next claim of anybody keeps its new consumers, and gets an answer of 500. Yields the uuids of the consumers."""
    left: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        write, delete = allocation.replace_all, handlers.delete_consumers

        def die(context: object, written: list[allocation.Allocation]) -> None:
            if left:
                write(context, written)
                return
            left.extend(one.consumer.uuid for one in written)
            raise RuntimeError("Placement was killed")

        def keep_it(consumers: list[consumer.Consumer]) -> None:
            if not {one.uuid for one in consumers} <= set(left):
                delete(consumers)

        patch.setattr(allocation, "replace_all", die)
        patch.setattr(handlers, "delete_consumers", keep_it)
        yield left

"""A compromised host: a compute of the cloud that answers what a test wants."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from causeway.compute.service import ComputeService
from causeway.rpc.endpoint import Method

JUNK: list[Any] = [None, True, -1, 0, 2**31, 2**62, 2**80, 1e308]
JUNK += ["", "x\0y", "../../../etc/passwd", "/", "é" * 70_000, [], {}]
# (name of the RPC method, its arguments, the true reply) -> the reply that is sent
Lie = Callable[[str, dict[str, Any], dict[str, Any]], Any]


class LyingMethod:
    """A method that carries out its order, and answers something else."""

    def __init__(self, method: Method, lie: Lie) -> None:
        self._method, self._lie = method, lie

    def __call__(self, context: Any, arguments: dict[str, Any]) -> Any:
        return self._lie(self._method.name, arguments, self._method(context, arguments))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._method, name)


@contextmanager
def lying(compute: ComputeService, lie: Lie) -> Iterator[None]:
    """Within the block a host lies."""
    endpoints = compute._server.endpoints
    true = [dict(endpoint.methods) for endpoint in endpoints]
    for endpoint in endpoints:
        endpoint.methods.update({name: LyingMethod(each, lie) for name, each in endpoint.methods.items()})  # type: ignore[misc]
    try:
        yield
    finally:
        for endpoint, methods in zip(endpoints, true, strict=True):
            endpoint.methods.update(methods)


class Mutations:
    """Changes replies: each time one of their values becomes another one. ``seed``: the same lies again.

    ``ids``: of things of others.
    """

    def __init__(self, seed: int, ids: list[str]) -> None:
        self._random = random.Random(seed)
        self._ids = ids
        self.lies: list[tuple[str, str]] = []

    def __call__(self, method: str, _arguments: dict[str, Any], reply: dict[str, Any]) -> Any:
        places = list(_places(reply))
        holder, key = self._random.choice(places)
        holder[key] = lie = self._instead_of(holder[key])
        self.lies.append((method, f"{key}: {lie!r}"))
        return reply

    def _instead_of(self, value: Any) -> Any:
        if isinstance(value, str) and self._random.random() < 0.6:
            return self._random.choice(self._ids)
        if isinstance(value, list) and value and self._random.random() < 0.5:
            return [*value, *value]
        if isinstance(value, list) and self._random.random() < 0.5:
            return self._ids
        return self._random.choice([*JUNK, *self._ids])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """(container, key) of each value inside, the containers themselves too."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in list(inside):
        yield value, key
        yield from _places(each)

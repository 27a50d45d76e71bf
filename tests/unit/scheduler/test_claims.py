"""Claims on one provider take turns, so that none of them loses a race in Placement."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from causeway import errors
from causeway.clients.placement import AllocationRequest, PlacementClient
from causeway.scheduler.claims import Claims
from causeway.scheduler.request import MoveClaim, RequestSpec


class Placement:
    """Counts claims on the same provider at the same time; each lasts until others had the chance to come in between."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.under_way: list[str] = []
        self.races = self.claims = 0
        self.gap = threading.Event()

    def claim(self, _consumer: str, allocations: dict[str, Any], *_owner: str, **_options: Any) -> None:
        self._claim(list(allocations))

    def claim_for_move(
        self, _server: str, _migration: str, target: dict[str, Any], *_owner: str, source_provider: str, **_options: Any
    ) -> None:
        self._claim([*target, source_provider])

    def _claim(self, providers: list[str]) -> None:
        with self.lock:
            self.claims += 1
            self.races += any(provider in self.under_way for provider in providers)
            self.under_way += providers
        self.gap.wait(0.002)
        with self.lock:
            for provider in providers:
                self.under_way.remove(provider)


def on(provider: str) -> AllocationRequest:
    return AllocationRequest({provider: {"VCPU": 1}})


@pytest.fixture
def spec(make_spec: Any) -> RequestSpec:
    found: RequestSpec = make_spec()
    return found


def test_builds_on_one_host_take_turns(spec: RequestSpec) -> None:
    placement = Placement()
    claims = Claims(cast(PlacementClient, placement))
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: claims.claim(spec, f"s{number}", on(f"host{number % 2}"), None), range(32)))
    assert (placement.claims, placement.races) == (32, 0)


def test_moves_from_a_host_and_to_it_take_turns(spec: RequestSpec) -> None:
    """Back and forth between two hosts: nobody waits for whoever waits for them."""
    placement = Placement()
    claims = Claims(cast(PlacementClient, placement))

    def move(number: int) -> None:
        here, there = ("a", "b") if number % 2 else ("b", "a")
        claims.claim(spec, f"s{number}", on(there), MoveClaim(f"m{number}", here))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(move, range(32)))
    assert (placement.claims, placement.races) == (32, 0)


def test_a_claim_that_is_refused_keeps_nobody_waiting(spec: RequestSpec) -> None:
    class Refuses(Placement):
        def _claim(self, providers: list[str]) -> None:
            raise errors.ClaimRefused(f"{providers} are full")

    claims = Claims(cast(PlacementClient, Refuses()))
    for _ in range(2):
        with pytest.raises(errors.ClaimRefused):
            claims.claim(spec, "server", on("host"), None)

"""What is remembered of all hosts: looked up beside the requests, with what was claimed meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
from oslo_config.cfg import ConfigOpts

from causeway.clients.placement import Candidates, CandidatesRequest, Capacity, PlacementClient, ProviderSummary
from causeway.model.host import Aggregate
from causeway.scheduler import fleet as fleet_module
from causeway.scheduler import host_state
from causeway.scheduler.filters import Request
from causeway.scheduler.fleet import Fleet
from causeway.scheduler.host_state import HostCache, HostRecord, HostState
from causeway.scheduler.request import RequestSpec
from causeway.scheduler.resources import Prefilters, candidates_request
from causeway.scheduler.select import Ranker

MakeHost = Callable[..., HostState]


class Placement:
    """Says what hosts have, when it may."""

    def __init__(self) -> None:
        self.free: dict[str, int] = {}
        self.asked = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.questions = 0

    def tree(self, host: str) -> ProviderSummary:
        room = {
            "MEMORY_MB": Capacity(4096, 4096 - self.free[host]),
            "VCPU": Capacity(64, 0),
            "DISK_GB": Capacity(100, 0),
        }
        return ProviderSummary(f"node-{host}", f"node-{host}", resources=room)

    def allocation_candidates(self, _request: CandidatesRequest) -> Candidates:
        self.questions += 1
        found = Candidates(providers={f"node-{host}": self.tree(host) for host in self.free})
        self.asked.set()
        assert self.may_answer.wait(30)
        return found

    def list_providers(self, **_wanted: str) -> list[Any]:
        return []


class Source:
    def __init__(self, records: list[HostRecord]) -> None:
        self.records = records

    def host_states(self, provider_uuids: set[str] | None) -> list[HostRecord]:
        return [one for one in self.records if provider_uuids is None or one.node.uuid in provider_uuids]

    def silent_cells(self) -> list[str]:
        return []

    def aggregates(self) -> list[Aggregate]:
        return []


class World:
    """A fleet of three hosts, and the clock that it goes by."""

    def __init__(self, conf: ConfigOpts, make_host: MakeHost, spec: RequestSpec) -> None:
        self.moment = 1000.0
        self.placement = Placement()
        self.placement.free = {"host1": 3000, "host2": 2000, "host3": 1000}
        self.source = Source([make_host(host).record for host in self.placement.free])
        hosts = HostCache(cast(Any, self.source), max_age=10, service_down_time=60, many=0)
        self.fleet = Fleet(cast(PlacementClient, self.placement), hosts, Ranker(conf), by_image=False)
        self.request = Request(spec)
        self.asked = candidates_request(spec, [], Prefilters())

    def choose(self, *, claims: bool = True, without: tuple[str, ...] = ()) -> str | None:
        choice = self.fleet.choose(self.asked, self.request, alternates=2, without=[f"node-{host}" for host in without])
        if choice is None:
            return None
        (self.fleet.claimed if claims else self.fleet.release)(choice)
        if claims:
            self.fleet.ended([choice])
        return choice.host.host

    def wait(self) -> None:
        self.fleet.close()


@pytest.fixture
def world(
    conf: ConfigOpts, make_host: MakeHost, make_spec: Callable[..., RequestSpec], monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    # Memory alone decides.
    for other in ("cpu", "disk"):
        conf.set_override(f"{other}_weight_multiplier", 0.0, group="filter_scheduler")
    world = World(conf, make_host, make_spec())
    clock = SimpleNamespace(monotonic=lambda: world.moment)
    monkeypatch.setattr(fleet_module, "time", clock)
    monkeypatch.setattr(host_state, "time", clock)
    yield world
    world.placement.may_answer.set()
    world.wait()


def test_what_was_claimed_counts_and_what_was_not_does_not(world: World) -> None:
    assert [world.choose(claims=False) for _ in range(12)] == ["host1"] * 12
    # The server takes 128: after eight of them the first host has less than the second.
    assert [world.choose() for _ in range(9)] == ["host1"] * 8 + ["host2"]
    assert world.placement.questions == 1


def test_requests_continue_while_all_hosts_are_looked_up_again(world: World) -> None:
    assert world.choose(claims=False) == "host1"
    world.placement.free |= {"host3": 4000}
    world.placement.may_answer.clear()
    world.placement.asked.clear()
    world.moment += 11
    assert world.choose(claims=False) == "host1"
    assert world.placement.asked.wait(30)
    # Claimed while the answer, which does not know of it, is on its way.
    assert [world.choose() for _ in range(2)] == ["host1"] * 2
    world.placement.may_answer.set()
    world.wait()
    assert world.choose(claims=False) == "host3"
    view = world.fleet._view
    assert view is not None and view.room_of("node-host1")["MEMORY_MB"] == 3000 - 2 * 128


def test_what_is_much_too_old_is_not_used(world: World) -> None:
    world.choose(claims=False)
    world.placement.free |= {"host3": 4000}
    world.moment += 31
    assert world.choose(claims=False) == "host3"


def test_what_placement_says_of_one_host_is_the_truth(world: World) -> None:
    world.choose()
    world.placement.free["host1"] = 500
    assert world.fleet.note("node-host1", [world.placement.tree("host1")], world.moment + 1)
    assert world.choose() == "host2"
    assert not world.fleet.note("node-host3", [world.placement.tree("host3")], world.moment + 1)


def test_a_host_that_stops_reporting_is_looked_at_before_it_is_passed_over(
    world: World, make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked at again before it is passed over."""
    world.choose(claims=False)
    later = datetime.now(UTC).replace(tzinfo=None).replace(year=2999)
    monkeypatch.setattr(world.fleet._hosts, "now", lambda: later)
    world.moment += 2
    world.source.records = [make_host("host1").record, make_host("host2", service={"last_seen_up": later}).record]
    assert world.choose() == "host2"


def test_verdicts_are_kept_until_a_host_changes(world: World, make_host: MakeHost) -> None:
    world.choose(claims=False)
    kept = world.fleet._view
    assert kept is not None
    world.moment += 31
    world.choose(claims=False)
    assert world.fleet._view is not kept and world.fleet._view is not None
    assert world.fleet._view._kinds is kept._kinds
    world.source.records[0] = make_host("host1", node={"supported_instances": []}).record
    world.moment += 31
    world.choose(claims=False)
    assert world.fleet._view._kinds is not kept._kinds

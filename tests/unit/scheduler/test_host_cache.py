"""What the scheduler remembers of hosts, and when it looks again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.clients.placement import Capacity, ProviderSummary
from causeway.model.host import Aggregate
from causeway.scheduler import host_state
from causeway.scheduler.group_picks import GroupPicks
from causeway.scheduler.host_state import HostCache, HostRecord, HostState

MakeHost = Callable[..., HostState]


class Hosts:
    """A source that counts how often it is asked."""

    def __init__(self, records: list[HostRecord], aggregates: list[Aggregate] | None = None) -> None:
        self.records, self._aggregates = records, aggregates or []
        self.looks = 0

    def silent_cells(self) -> list[str]:
        return []

    def host_states(self, provider_uuids: set[str] | None) -> list[HostRecord]:  # noqa: ARG002
        self.looks += 1
        return self.records

    def aggregates(self) -> list[Aggregate]:
        return self._aggregates

    def group_members(self, group_uuid: str) -> set[str]:  # noqa: ARG002
        return set()

    def group_hosts(self, members: set[str]) -> dict[str, set[str]]:  # noqa: ARG002
        return {}

    def instance_hosts(self, instance_uuids: set[str]) -> dict[str, str]:  # noqa: ARG002
        return {}


def cache_of(source: Hosts, max_age: float = 100, now: datetime | None = None) -> HostCache:
    moment = now or datetime.now(UTC).replace(tzinfo=None)
    return HostCache(source, max_age=max_age, service_down_time=60, now=lambda: moment)


def test_hosts_are_looked_up_once(make_host: MakeHost) -> None:
    source = Hosts([make_host().record])
    cache = cache_of(source)
    for _ in range(3):
        assert [host.host for host in cache.states()] == ["host1"]
        cache.aggregates()
        cache.find(host="host1")
    assert source.looks == 1
    cache.invalidate()
    cache.states()
    assert source.looks == 2


def test_what_is_too_old_is_looked_up_again(make_host: MakeHost) -> None:
    source = Hosts([make_host().record])
    cache = cache_of(source, max_age=0)
    cache.states()
    cache.states()
    assert source.looks == 2


def test_a_service_goes_down_while_it_is_remembered(make_host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_state, "LEAST_SECONDS_BETWEEN_LOOKS", 0)
    seen = datetime(2026, 1, 1)
    source = Hosts([make_host(service={"last_seen_up": seen}).record])
    moment = seen + timedelta(seconds=60)
    cache = HostCache(source, max_age=1000, service_down_time=60, now=lambda: moment)
    assert cache.states()[0].is_up
    moment += timedelta(seconds=1)
    assert not cache.states()[0].is_up
    # It was looked up again before that was said: it might have reported meanwhile.
    assert source.looks == 2
    source.records[0].service.last_seen_up = moment
    assert cache.states()[0].is_up


def test_a_service_that_is_forced_down_or_never_reported_is_down(make_host: MakeHost) -> None:
    for service in ({"forced_down": True}, {"last_seen_up": None}):
        assert not cache_of(Hosts([make_host(service=service).record])).states()[0].is_up


def test_a_host_that_is_new_is_found(make_host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_state, "LEAST_SECONDS_BETWEEN_LOOKS", 0)
    source = Hosts([])
    cache = cache_of(source)
    assert cache.states() == []
    source.records = [make_host().record]
    summary = ProviderSummary("node-host1", "node-host1", resources={"VCPU": Capacity(8, 3)})
    assert [host.free_vcpus for host in cache.states({"node-host1": summary})] == [5]


def test_a_host_knows_its_aggregates_and_zone(make_host: MakeHost) -> None:
    aggregates = [
        Aggregate("a", "a", ["host1"], {"gen": "1"}),
        Aggregate("b", "b", ["host1", "host2"], {"availability_zone": "zone1"}),
        Aggregate("c", "c", ["host2"], {"gen": "2"}),
    ]
    state = cache_of(Hosts([make_host().record], aggregates)).states()[0]
    assert state.aggregate_values("gen") == {"1"}
    assert state.availability_zone("nova") == "zone1"
    assert make_host().availability_zone("nova") == "nova"


def test_a_pick_counts_for_the_next_server_of_the_request(make_host: MakeHost) -> None:
    host = make_host(capacity={"VCPU": Capacity(8, 1)})
    host.take({"VCPU": 2, "CUSTOM_X": 1})
    assert (host.free_vcpus, host.num_instances) == (5, 1)


def test_a_pick_for_a_group_counts_until_the_databases_show_it() -> None:
    picks = GroupPicks()
    with picks.turn("group"), picks.turn(None):
        picks.add("group", "one", "host1")
    members = {"one", "two"}
    assert picks.seen("group", members, {}) == {"host1": {"one"}}
    assert picks.seen("group", members, {"host1": {"one"}, "host2": {"two"}}) == {"host1": {"one"}, "host2": {"two"}}
    assert picks.seen("group", members, {"host1": {"two"}}) == {"host1": {"one", "two"}}
    assert picks.seen("other", members, {}) == {}


def test_a_pick_for_a_server_that_was_deleted_does_not_count() -> None:
    picks = GroupPicks()
    picks.add("group", "one", "host1")
    assert picks.seen("group", {"two"}, {"host2": {"two"}}) == {"host2": {"two"}}


def test_a_pick_for_a_group_is_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causeway.scheduler.group_picks.SECONDS_UNTIL_SEEN", -1)
    picks = GroupPicks()
    picks.add("group", "one", "host1")
    assert picks.seen("group", {"one"}, {}) == {}


class Slow(Hosts):
    """A source that answers when the test lets it."""

    def __init__(self, records: list[HostRecord]) -> None:
        super().__init__(records)
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.asked = threading.Event()

    def host_states(self, provider_uuids: set[str] | None) -> list[HostRecord]:
        self.asked.set()
        assert self.may_answer.wait(30)
        return super().host_states(provider_uuids)


def test_many_hosts_are_looked_up_beside_the_requests(make_host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 1000.0
    monkeypatch.setattr(host_state, "time", SimpleNamespace(monotonic=lambda: moment))
    source = Slow([make_host("host1").record, make_host("host2").record])
    cache = HostCache(source, max_age=10, service_down_time=60, many=1)
    assert len(cache.states()) == 2
    source.records = [make_host("host3").record]
    source.may_answer.clear()
    source.asked.clear()
    moment += 11
    # What is too old is used until the new is there.
    assert len(cache.states()) == 2
    assert source.asked.wait(30)
    assert len(cache.states()) == 2
    source.may_answer.set()
    cache.close()
    assert [host.host for host in cache.states()] == ["host3"]
    assert source.looks == 2


def test_what_is_much_too_old_is_waited_for(make_host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = 1000.0
    monkeypatch.setattr(host_state, "time", SimpleNamespace(monotonic=lambda: moment))
    source = Hosts([make_host("host1").record, make_host("host2").record])
    cache = HostCache(source, max_age=10, service_down_time=60, many=1)
    cache.states()
    source.records = [make_host("host3").record]
    moment += 31
    assert [host.host for host in cache.states()] == ["host3"]


def test_what_was_called_outdated_while_it_was_read_is_not_used(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = 1000.0
    monkeypatch.setattr(host_state, "time", SimpleNamespace(monotonic=lambda: moment))
    source = Slow([make_host("host1").record, make_host("host2").record])
    cache = HostCache(source, max_age=10, service_down_time=60, many=1)
    cache.states()
    source.may_answer.clear()
    source.asked.clear()
    moment += 11
    cache.states()
    assert source.asked.wait(30)
    cache.invalidate()
    source.may_answer.set()
    cache.close()
    source.records = [make_host("host3").record]
    assert [host.host for host in cache.states()] == ["host3"]


def test_only_who_seems_to_be_down_is_looked_at_again(make_host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_state, "LEAST_SECONDS_BETWEEN_LOOKS", 0)
    asked: list[set[str] | None] = []

    class Notes(Hosts):
        def host_states(self, provider_uuids: set[str] | None) -> list[HostRecord]:
            asked.append(provider_uuids)
            return super().host_states(provider_uuids)

    down = make_host("down", service={"last_seen_up": datetime(2026, 1, 1)})
    cache = cache_of(Notes([make_host("up").record, down.record]))
    assert [host.is_up for host in cache.states()] == [True, False]
    assert asked == [None, {"node-down"}]


NOW = datetime(2026, 1, 1, 12)


@pytest.mark.parametrize(
    ("seen", "together"),
    [
        ([70, 75, 80], ["cell1"]),
        ([70, 75, 5], []),
        # Not at the same time; long ago; one host alone may have died; one that never reported never will.
        ([70, 110, 150], []),
        ([7000, 7001, 7002], []),
        ([70], []),
        ([70, 72, None], []),
    ],
)
def test_hosts_of_a_cell_that_fell_silent_together_are_known(
    make_host: MakeHost, seen: list[float | None], together: list[str]
) -> None:
    def of(number: int, ago: float | None, **service: Any) -> HostRecord:
        when = None if ago is None else NOW - timedelta(seconds=ago)
        return make_host(f"host{number}", service={"last_seen_up": when, **service}).record

    records = [of(number, ago) for number, ago in enumerate(seen)]
    # Neither what an operator has closed says anything, nor another cell.
    records += [of(10, 5, disabled=True), of(11, 5, forced_down=True)]
    records.append(make_host("host12", cell="cell2", service={"last_seen_up": NOW}).record)
    cache = cache_of(Hosts(records), now=NOW)
    cache.states()
    assert cache.silent_together() == together

"""How many moves at once a resource takes: tried, measured, lowered again."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.drains import climbing
from causeway.drains.climbing import after, measured, room_of
from causeway.drains.pace import ALL, BYTES, Resource, resources_of
from causeway.model.drains import Climb, DrainServer, DrainServerState, Limits, Pacing

MIB = 1 << 20
PERIOD, MOST = 15.0, 64


def climbed(carries: int, periods: int = 400, crowd: float = 0.0) -> list[int]:
    """The limits of a resource that ``carries`` so many moves at full speed; each one more costs a ``crowd`` of the whole."""
    climb, seen = Climb(2), []
    for _ in range(periods):
        through = min(climb.limit, carries) * (1 - crowd * max(0, climb.limit - carries))
        climb = after(climb, int(through * 100 * MIB * PERIOD), PERIOD, is_full=True, most=MOST)
        seen.append(climb.limit)
    return seen


@given(st.integers(2, 40))
def test_a_limit_is_raised_while_that_brings_something_and_not_much_further(carries: int) -> None:
    seen = climbed(carries)[100:]
    assert min(seen) >= carries * 0.7
    # One raise further is tried now and then, and lowered again.
    assert max(seen) <= max(carries + 1, carries * 1.5 * 1.5)
    assert sum(limit <= carries * 1.5 + 1 for limit in seen) > 0.8 * len(seen)


@given(st.integers(2, 20))
def test_what_a_crowd_slows_down_is_not_crowded(carries: int) -> None:
    seen = climbed(carries, crowd=0.05)[100:]
    assert sum(limit <= carries * 1.5 + 1 for limit in seen) > 0.8 * len(seen)


@given(st.lists(st.tuples(st.integers(0, 1 << 40), st.floats(0.1, 1000), st.booleans())), st.integers(1, 20))
def test_a_limit_is_never_below_one_nor_above_the_most(periods: list[tuple[int, float, bool]], most: int) -> None:
    climb = Climb(1)
    for size, seconds, is_full in periods:
        climb = after(climb, size, seconds, is_full=is_full, most=most)
        assert 1 <= climb.limit <= most


def test_what_is_not_used_up_to_its_limit_shows_nothing() -> None:
    climb = Climb(4, 1000.0, raised_from=3)
    for _ in range(10):
        climb = after(climb, 1, PERIOD, is_full=False, most=MOST)
    assert climb == Climb(4, 1000.0, raised_from=3)


def test_a_limit_falls_when_what_comes_through_breaks_down() -> None:
    climb = Climb(8, 100.0 * MIB, rest=5)
    for _ in range(3):
        climb = after(climb, int(10 * MIB * PERIOD), PERIOD, is_full=True, most=MOST)
    assert climb.limit == 6


def moving(uuid: str, host: str = "one", state: DrainServerState = DrainServerState.ASKED) -> DrainServer:
    return DrainServer(
        drain_id="d",
        instance_uuid=uuid,
        state=state,
        request_id=f"req-{uuid}",
        source_cell="cell1",
        source_host=host,
        target_cell="cell2",
        target_host="target",
    )


def test_bytes_are_counted_once_for_all_that_a_move_uses() -> None:
    pacing = measured(Pacing(), Limits(), [moving("a")], {"a": 700}, 1000.0, 100.0)
    assert (pacing.rate, pacing.sent) == (0.0, {"req-a": 700})
    # A step that begins anew has sent nothing yet: what it sends again is not counted before it is more.
    servers = [moving("a"), moving("b", "two"), moving("over", state=DrainServerState.DONE)]
    pacing = measured(pacing, Limits(), servers, {"a": 100, "b": 40, "over": 60}, 1010.0, 100.0)
    assert pacing.rate == 10.0
    assert pacing.sent == {"req-a": 700, "req-b": 40}
    pacing = measured(pacing, Limits(), servers[:2], {"a": 720, "b": 40}, 1020.0, 100.0)
    assert pacing.rate == 2.0
    assert set(pacing.climbs) == {str(each) for server in servers for each in resources_of(server)}


def test_a_limit_that_was_set_is_not_climbed() -> None:
    limits = Limits(total=5, per_source_host=1)
    pacing = measured(Pacing(at=1.0), limits, [moving("a")], {"a": 700}, 1000.0, 100.0)
    assert set(pacing.climbs) == {"per_target_host target", "per_cell_pair cell1 cell2"}
    assert room_of(limits, pacing, 100.0).of(Resource("per_source_host", "one")) == 1


@settings(max_examples=25)
@given(st.integers(1, 60), st.floats(5, 200))
def test_the_bytes_a_second_of_a_drain_are_used_by_as_few_as_it_takes(limit: int, alone: float) -> None:
    """``alone``: MiB a second that one move has by itself; nothing else bounds them."""
    limits, pacing, sent = Limits(total=400, bytes_per_second=limit * 10 * MIB), Pacing(at=1.0), dict.fromkeys("a", 0)
    now = 1.0
    for _ in range(200):
        most = room_of(limits, pacing, 100.0).of(ALL)
        servers = [moving(str(number)) for number in range(most)]
        rate = min(most * alone, limit * 10)
        now += PERIOD
        sent = {
            each.instance_uuid: sent.get(each.instance_uuid, 0) + int(rate / most * MIB * PERIOD) for each in servers
        }
        pacing = measured(pacing, limits, servers, sent, now, 100.0)
    assert pacing.rate >= 0.85 * limit * 10 * MIB or most == climbing._MOST["total"]
    needed = limit * 10 / alone
    assert most <= max(needed + 2, limit * 10 / 100.0 + 1)
    assert pacing.climbs[BYTES].limit == most or pacing.climbs[BYTES].limit == most + 1

"""Estimates when all moves of a drain would have ended, and what delays the end most. Simulates the drain, move by move.

A move begins when a window is open and its limits allow it: moves at once in all, from its host, to its host, between its
cells. Moves that share a host share its rate. The rest of a move (a guest boots, records are written) takes the same time,
whatever else is running.

To find what bounds a drain, each limit and rate is doubled in turn: the one that then brings the earliest end bounds the drain.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from causeway.drains.windows import Opening, openings
from causeway.model.drains import First, Limits, Window

# A limit or rate bounds a drain only if doubling it saves this part of the time.
_WORTH = 0.01
_MIB = 1 << 20


@dataclass(frozen=True)
class Transfer:
    """A move: MiB that travel, and seconds for everything else. ``not_before``: until then the server's owner asks to wait."""

    id: str
    source: str
    target: str
    cells: tuple[str, str]
    mib: float
    seconds: float
    not_before: datetime | None = None


@dataclass(frozen=True)
class Pace:
    """``rate``: MiB a second that a host sends, and receives."""

    limits: Limits
    rate: float
    windows: tuple[Window, ...] = ()
    first: First = First.LARGEST


@dataclass
class Times:
    """Seconds since the drain's beginning, by the ids of moves."""

    began: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)

    @property
    def makespan(self) -> float:
        return max(self.ended.values(), default=0.0)


@dataclass
class Bound:
    """``what`` bounds a drain; with twice as much of it, the drain would take ``seconds``."""

    what: str
    seconds: float


def simulate(transfers: Sequence[Transfer], pace: Pace, begin: datetime) -> Times:
    """Returns when each move would begin and end, in a drain that begins at ``begin``."""
    return _Simulation(transfers, pace, begin).run()


def bound_of(transfers: Sequence[Transfer], pace: Pace, begin: datetime, seconds: float) -> Bound | None:
    """Returns what bounds a drain that takes ``seconds``; None if doubling no limit or rate would help."""
    best: Bound | None = None
    for what, doubled in _doubled(pace):
        # More moves at once may take longer, if large ones begin later. A higher limit need not be used, so that does not count.
        found = min(seconds, simulate(transfers, doubled, begin).makespan)
        if seconds - found > _WORTH * seconds and (best is None or found < best.seconds):
            best = Bound(what, found)
    return best


def _doubled(pace: Pace) -> Iterator[tuple[str, Pace]]:
    limits = pace.limits.planned()
    yield f"the hosts' rate of {pace.rate:g} MiB/s", replace(pace, rate=2 * pace.rate)
    for name, words in (
        ("per_source_host", "from a host"),
        ("per_target_host", "to a host"),
        ("per_cell_pair", "between two cells"),
        ("total", "in all"),
    ):
        most = getattr(limits, name)
        yield (
            f"the limit of {most} {'move' if most == 1 else 'moves'} at once {words}",
            replace(pace, limits=replace(limits, **{name: 2 * most})),
        )
    if limits.bytes_per_second is not None:
        twice = replace(limits, bytes_per_second=2 * limits.bytes_per_second)
        yield f"the limit of {limits.bytes_per_second / _MIB:g} MiB/s in all", replace(pace, limits=twice)
    if pace.windows:
        yield "the windows in which moves may begin", replace(pace, windows=tuple(map(_longer, pace.windows)))


def _longer(window: Window) -> Window:
    """Returns a window that is twice as long, but a day at most."""
    start, end = _minutes(window.start), _minutes(window.end)
    length = end - start if end > start else end - start + 24 * 60
    end = start + min(2 * length, 24 * 60)
    return replace(window, end=f"{end // 60 % 24:02}:{end % 60:02}")


def _minutes(clock: str) -> int:
    hours, minutes = clock.split(":")
    return 60 * int(hours) + int(minutes)


class _Kind(StrEnum):
    OPENING = "opening"
    RELEASED = "released"
    SENT = "sent"
    ENDED = "ended"


@dataclass
class _Moving:
    """A move whose bytes travel. ``left``: the MiB left at ``since``. ``version``: the number of its present planned end."""

    transfer: Transfer
    left: float
    since: float
    rate: float = 0.0
    version: int = 0


class _Simulation:
    def __init__(self, transfers: Sequence[Transfer], pace: Pace, begin: datetime) -> None:
        self._pace = pace
        self._begin = begin
        self._times = Times()
        sign = -1 if pace.first is First.LARGEST else 1
        self._order = sorted(transfers, key=lambda each: (sign * each.mib, each.id))
        limits = pace.limits.planned()
        self._total: int = limits.total or 0
        # MiB a second of all moves together.
        self._whole = None if limits.bytes_per_second is None else limits.bytes_per_second / _MIB
        self._limits = {
            "source": limits.per_source_host or 0,
            "target": limits.per_target_host or 0,
            "cells": limits.per_cell_pair or 0,
        }
        self._busy: Counter[tuple[str, object]] = Counter()
        self._under_way = 0
        # The numbers of moves that may begin. A move that waits for a resource is in its queue until it is free.
        self._ready: list[int] = []
        self._parked: dict[tuple[str, object], list[int]] = {}
        self._events: list[tuple[float, int, _Kind, int]] = []
        self._count = 0
        self._moving: dict[int, _Moving] = {}
        self._on_host: dict[tuple[str, str], set[int]] = {}
        self._openings = openings(pace.windows, begin) if pace.windows else None
        self._opening: Opening | None = next(self._openings) if self._openings is not None else None

    def run(self) -> Times:
        for number, transfer in enumerate(self._order):
            held = (transfer.not_before - self._begin).total_seconds() if transfer.not_before is not None else 0.0
            if held > 0:
                self._happens(held, _Kind.RELEASED, number)
            else:
                self._ready.append(number)
        self._begin_moves(0.0)
        while self._events:
            now, version, kind, number = heapq.heappop(self._events)
            if kind is _Kind.SENT:
                if number in self._moving and self._moving[number].version == version:
                    self._sent(number, now)
                continue
            if kind is _Kind.ENDED:
                self._ended(number, now)
            elif kind is _Kind.RELEASED:
                heapq.heappush(self._ready, number)
            self._begin_moves(now)
        return self._times

    def _begin_moves(self, now: float) -> None:
        if not self._ready or not self._may_begin(now):
            return
        while self._ready and self._under_way < self._total:
            number = heapq.heappop(self._ready)
            full = next((each for each in self._resources(number) if self._is_full(each)), None)
            if full is None:
                self._start(number, now)
                continue
            heapq.heappush(self._parked.setdefault(full, []), number)
            # Another move may use the other resources that this one would have used.
            for each in self._resources(number):
                if not self._is_full(each):
                    self._unpark(each)

    def _may_begin(self, now: float) -> bool:
        """Whether a window is open. If not, adds the beginning of the next one as an event."""
        if self._openings is None or self._opening is None:
            return True
        moment = self._begin + timedelta(seconds=now)
        while self._opening.end <= moment:
            self._opening = next(self._openings)
        # A microsecond is the smallest difference of two times.
        ahead = (self._opening.start - moment).total_seconds()
        if ahead <= 0:
            return True
        self._happens(now + ahead, _Kind.OPENING, -1)
        return False

    def _start(self, number: int, now: float) -> None:
        transfer = self._order[number]
        self._under_way += 1
        self._busy.update(self._resources(number))
        self._times.began[transfer.id] = now
        self._moving[number] = _Moving(transfer, transfer.mib, now)
        for place in _places(transfer):
            self._on_host.setdefault(place, set()).add(number)
        self._share(transfer, now)

    def _sent(self, number: int, now: float) -> None:
        moving = self._moving.pop(number)
        for place in _places(moving.transfer):
            self._on_host[place].remove(number)
        self._share(moving.transfer, now)
        self._happens(now + moving.transfer.seconds, _Kind.ENDED, number)

    def _ended(self, number: int, now: float) -> None:
        self._times.ended[self._order[number].id] = now
        self._under_way -= 1
        for each in self._resources(number):
            self._busy[each] -= 1
            self._unpark(each)

    def _share(self, changed: Transfer, now: float) -> None:
        """Computes the rates of all moves that share a host with ``changed``."""
        concerned = (
            set().union(*(self._on_host[place] for place in _places(changed)))
            if self._whole is None
            else set(self._moving)
        )
        for number in sorted(concerned):
            moving = self._moving[number]
            rate = self._pace.rate / max(len(self._on_host[place]) for place in _places(moving.transfer))
            if self._whole is not None:
                rate = min(rate, self._whole / len(self._moving))
            if rate == moving.rate:
                continue
            moving.left = max(0.0, moving.left - moving.rate * (now - moving.since))
            moving.since, moving.rate = now, rate
            moving.version = self._happens(now + moving.left / rate, _Kind.SENT, number)

    def _unpark(self, resource: tuple[str, object]) -> None:
        if self._parked.get(resource):
            heapq.heappush(self._ready, heapq.heappop(self._parked[resource]))

    def _is_full(self, resource: tuple[str, object]) -> bool:
        return self._busy[resource] >= self._limits[resource[0]]

    def _resources(self, number: int) -> list[tuple[str, object]]:
        transfer = self._order[number]
        return [("source", transfer.source), ("target", transfer.target), ("cells", transfer.cells)]

    def _happens(self, when: float, kind: _Kind, number: int) -> int:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, kind, number))
        return self._count


def _places(transfer: Transfer) -> tuple[tuple[str, str], tuple[str, str]]:
    """Returns the places whose rate a move uses. Sending and receiving are separate: neither slows down the other."""
    return ("out", transfer.source), ("in", transfer.target)

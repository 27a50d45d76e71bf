"""A cell is drained in simulated time: links and disks have speeds, guests write meanwhile; what decides is the drain's own code.

What is simulated is the cloud: bytes that travel, fairly shared by all that use a link or a disk (each stream has the same share
of what is scarcest for it), in the rounds of a warm move, with what guests dirty meanwhile. Who goes next and how many at once is
decided as a conductor's look does it, every three seconds: `causeway.drains.pace` and `climbing`, with rows of servers and bytes
measured. The real services would take minutes of CPU for each thousand moves; that is measured apart (`moves`).
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from causeway.drains import climbing, pace
from causeway.drains.pace import ALL, Room
from causeway.model.drains import DrainServer, DrainServerState, First, How, Limits, Pacing

_GIB = 1 << 30
_BEGIN = datetime(2027, 3, 1)
# As a conductor's: seconds between two checks, and after which it measures.
_LOOK, _MEASURE = 3.0, 15.0
# As [moves] has them: rounds at most, and seconds that the last one takes.
_ROUNDS, _LAST_ROUND = 5, 2.0
# Seconds before a move's first byte, and after its last one (ports, boot, records, confirm).
_BEFORE, _AFTER = 6.0, 16.0
_LONG = 365 * 86400.0


@dataclass(frozen=True)
class Speeds:
    """MiB a second: of hosts' disks and links, of the link between two cells, and of one stream by itself.

    ``crowd``: streams that a disk serves without loss; each one more costs it a ``loss`` of what it can.
    """

    disk: float = 500.0
    link: float = 1190.0
    cells: float = 4760.0
    stream: float = 180.0
    crowd: int = 8
    loss: float = 0.03


class _Part(NamedTuple):
    """What a stream uses: a disk, a link."""

    kind: str
    name: str


@dataclass
class Drained:
    """``bound``: hours that the slowest resource takes for what it must carry at least, and which one that is.

    ``used``: the part of its speed that the bounding resource carried, until nine tenths of all bytes were through.
    """

    how: str
    hours: float
    bound: float
    bound_by: str
    used: float
    at_once: float
    most_at_once: int
    sent_tib: float
    pause_median: float
    pause_worst: float
    climbed: dict[str, int] = field(default_factory=dict)

    @property
    def over_bound(self) -> float:
        return self.hours / self.bound - 1


@dataclass
class _Move:
    """A stream. ``left``: bytes of the present round; ``dirty``: bytes a second that its guest changes."""

    server: DrainServer
    dirty: float
    uses: list[_Part]
    left: float
    round: int = 1
    round_began: float = 0.0
    sent: float = 0.0
    rate: float = 0.0
    since: float = 0.0
    is_off: bool = False
    version: int = 0


def cell_of(servers: int, hosts: int, targets: int, seed: int = 7) -> tuple[list[DrainServer], dict[str, float]]:
    """Servers of all sizes on a cell's hosts, with their targets; and how many bytes a second each one's guest changes."""
    dice = random.Random(seed)
    found, dirty = [], {}
    for number in range(servers):
        uuid = f"{number:08d}-0000-4000-8000-000000000000"
        gib = min(800.0, max(4.0, dice.lognormvariate(3.6, 0.9)))
        target = number % targets
        found.append(
            DrainServer(
                drain_id="drain",
                instance_uuid=uuid,
                how=How.WARM,
                source_cell="cell1",
                source_host=f"source{dice.randrange(hosts):03d}",
                target_cell=f"cell{2 + target % 3}",
                target_host=f"target{target:03d}",
                bytes=int(gib * _GIB),
            )
        )
        # Most guests write little; one in twenty much.
        dirty[uuid] = (dice.uniform(10, 60) if dice.random() < 0.05 else dice.expovariate(1 / 1.5)) * (1 << 20)
    return found, dirty


def bound_of(servers: list[DrainServer], speeds: Speeds) -> tuple[float, _Part]:
    """Seconds that the slowest resource takes for all that must go through it once."""
    through: Counter[_Part] = Counter()
    for server in servers:
        through.update(dict.fromkeys(_uses(server), server.bytes))
    seconds = {part: size / _speed(part, 1, speeds) for part, size in through.items()}
    worst = max(seconds, key=lambda part: seconds[part])
    longest = max(server.bytes for server in servers) / _mib(speeds.stream) + _BEFORE + _AFTER
    return max(seconds[worst], longest), worst


def drain(
    how: str, servers: list[DrainServer], dirty: dict[str, float], speeds: Speeds, limits: Limits, *, climbs: bool
) -> Drained:
    """``climbs`` False: the limits are all that counts, in the order of servers' ids: what tools with a fixed number do."""
    return _Simulation(servers, dirty, speeds, limits, climbs=climbs).run(how)


class _Simulation:
    def __init__(
        self, servers: list[DrainServer], dirty: dict[str, float], speeds: Speeds, limits: Limits, *, climbs: bool
    ) -> None:
        self._servers = [_fresh(server) for server in servers]
        self._by_uuid = {server.instance_uuid: server for server in self._servers}
        self._dirty, self._speeds, self._limits, self._climbs = dirty, speeds, limits, climbs
        self._pacing = Pacing(at=_BEGIN.timestamp())
        self._moves: dict[str, _Move] = {}
        self._sent: dict[str, int] = {}
        self._events: list[tuple[float, int, str, str]] = []
        self._count = 0
        self._pauses: list[float] = []
        self._under_way: dict[str, DrainServer] = {}
        self._most = 0
        self._bound, self._worst = bound_of(servers, speeds)
        self._through = 0.0
        self._at_nine_tenths: tuple[float, float] | None = None

    def run(self, how: str) -> Drained:
        self._happens(0.0, "look", "")
        self._happens(_MEASURE, "measure", "")
        now, area = 0.0, 0.0
        ended = 0
        whole = sum(server.bytes for server in self._servers)
        while ended < len(self._servers):
            when, version, kind, uuid = heapq.heappop(self._events)
            under_way = len(self._under_way)
            area, now = area + (when - now) * under_way, when
            self._most = max(self._most, under_way)
            if kind == "round":
                if uuid in self._moves and self._moves[uuid].version == version:
                    self._round_ended(uuid, now)
            elif kind == "sending":
                self._begin_sending(uuid, now)
            elif kind == "over":
                server = self._by_uuid[uuid]
                server.state, server.ended_at = DrainServerState.DONE, _at(now)
                self._under_way.pop(uuid)
                ended += 1
            elif kind == "look":
                self._look(now)
                self._happens(now + _LOOK, "look", "")
            else:
                self._measure(now)
                self._happens(now + _MEASURE, "measure", "")
            total = sum(self._sent.values()) if kind == "over" and self._at_nine_tenths is None else 0
            if total >= 0.9 * whole:
                self._at_nine_tenths = now, self._through
        self._pauses.sort()
        at, through = self._at_nine_tenths or (now, self._through)
        return Drained(
            how=how,
            hours=now / 3600,
            bound=self._bound / 3600,
            bound_by=f"{self._worst.kind} {self._worst.name}",
            used=through / (at * _speed(self._worst, 1, self._speeds)),
            at_once=area / now,
            most_at_once=self._most,
            sent_tib=sum(self._sent.values()) / (1 << 40),
            pause_median=self._pauses[len(self._pauses) // 2],
            pause_worst=self._pauses[-1],
            climbed={name: climb.limit for name, climb in self._pacing.climbs.items() if " " not in name},
        )

    # what a conductor does

    def _look(self, now: float) -> None:
        room = climbing.room_of(self._limits, self._pacing, 100.0) if self._climbs else Room(self._limits)
        load = pace.load_of(self._under_way.values())
        if load.count[ALL] >= room.of(ALL):
            return
        waiting = [server for server in self._servers if server.state is DrainServerState.PENDING]
        if self._climbs:
            waiting = pace.waiting(waiting, First.LARGEST, _at(now))
        for server in waiting:
            if load.count[ALL] >= room.of(ALL):
                return
            if load.has_room(room, server):
                server.state, server.began_at = DrainServerState.ASKED, _at(now)
                server.request_id = server.instance_uuid
                self._under_way[server.instance_uuid] = server
                load.add(server)
                self._happens(now + _BEFORE, "sending", server.instance_uuid)

    def _measure(self, now: float) -> None:
        if not self._climbs:
            return
        self._catch_up(now)
        at = _BEGIN.timestamp() + now
        since = _at(now - _MEASURE)
        recent = [
            server
            for server in self._servers
            if server.state is DrainServerState.ASKED or (server.ended_at is not None and server.ended_at >= since)
        ]
        sent = {server.instance_uuid: self._sent.get(server.instance_uuid, 0) for server in recent}
        self._pacing = climbing.measured(self._pacing, self._limits, recent, sent, at, 100.0)

    # what the cloud does

    def _begin_sending(self, uuid: str, now: float) -> None:
        server = self._by_uuid[uuid]
        self._catch_up(now)
        self._moves[uuid] = _Move(server, self._dirty[uuid], _uses(server), float(server.bytes), 1, now, since=now)
        self._share(now)

    def _round_ended(self, uuid: str, now: float) -> None:
        self._catch_up(now)
        move = self._moves[uuid]
        took, move.round_began = now - move.round_began, now
        if move.is_off:
            self._pauses.append(took)
            del self._moves[uuid]
            self._happens(now + _AFTER, "over", uuid)
        else:
            # What changed while the round continued.
            move.left = min(float(move.server.bytes), move.dirty * took)
            move.is_off = move.round >= _ROUNDS or took <= _LAST_ROUND
            move.round += 1
        self._share(now)

    def _catch_up(self, now: float) -> None:
        for uuid, move in self._moves.items():
            come = min(move.left, move.rate * (now - move.since))
            move.left, move.since, move.sent = move.left - come, now, move.sent + come
            self._sent[uuid] = int(move.sent)
            if self._worst in move.uses:
                self._through += come

    def _share(self, now: float) -> None:
        """All streams anew: the scarcest part is shared out first, and what its streams leave of others is for the rest."""
        users: dict[_Part, set[str]] = defaultdict(set)
        for uuid, move in self._moves.items():
            for part in move.uses:
                users[part].add(uuid)
            users[_Part("stream", uuid)].add(uuid)
        left = {part: _speed(part, len(who), self._speeds) for part, who in users.items()}
        count = {part: len(who) for part, who in users.items()}
        heap = [(left[part] / count[part], part) for part in users]
        heapq.heapify(heap)
        given: dict[str, float] = {}
        while len(given) < len(self._moves):
            share, part = heapq.heappop(heap)
            if not count[part]:
                continue
            present = left[part] / count[part]
            if present > share * (1 + 1e-9):
                heapq.heappush(heap, (present, part))
                continue
            for uuid in users[part]:
                if uuid in given:
                    continue
                given[uuid] = present
                for other in (*self._moves[uuid].uses, _Part("stream", uuid)):
                    left[other] = max(0.0, left[other] - present)
                    count[other] -= 1
        for uuid, rate in given.items():
            move = self._moves[uuid]
            if not math.isclose(rate, move.rate, rel_tol=1e-9) or move.round_began == now:
                move.rate = rate
                move.version = self._happens(now + min(_LONG, move.left / max(rate, 1.0)), "round", uuid)

    def _happens(self, when: float, kind: str, uuid: str) -> int:
        self._count += 1
        heapq.heappush(self._events, (when, self._count, kind, uuid))
        return self._count


def _fresh(server: DrainServer) -> DrainServer:
    return DrainServer(
        drain_id=server.drain_id,
        instance_uuid=server.instance_uuid,
        how=server.how,
        source_cell=server.source_cell,
        source_host=server.source_host,
        target_cell=server.target_cell,
        target_host=server.target_host,
        bytes=server.bytes,
    )


def _uses(server: DrainServer) -> list[_Part]:
    source, target = server.source_host, server.target_host or ""
    return [
        _Part("disk", source),
        _Part("link out of", source),
        _Part("link between", f"{server.source_cell} and {server.target_cell}"),
        _Part("link into", target),
        _Part("disk", target),
    ]


def _speed(part: _Part, streams: int, speeds: Speeds) -> float:
    """Bytes a second."""
    if part.kind == "disk":
        return _mib(speeds.disk) / (1 + speeds.loss * max(0, streams - speeds.crowd))
    if part.kind == "link between":
        return _mib(speeds.cells)
    return _mib(speeds.stream if part.kind == "stream" else speeds.link)


def _mib(number: float) -> float:
    return number * (1 << 20)


def _at(seconds: float) -> datetime:
    return _BEGIN + timedelta(seconds=seconds)


def measure(servers: int, hosts: int, targets: int, say: Callable[[str], None]) -> list[Drained]:
    """The same cell, drained in four ways."""
    rows, dirty = cell_of(servers, hosts, targets)
    speeds = Speeds()
    found = []
    for how, limits, climbs in (
        ("limits found out", Limits(), True),
        ("one after the other", _fixed(1), False),
        ("20 at once", _fixed(20), False),
        ("400 at once", _fixed(400), False),
    ):
        say(f"{servers} servers are drained: {how}")
        found.append(drain(how, rows, dirty, speeds, limits, climbs=climbs))
    return found


def _fixed(number: int) -> Limits:
    return Limits(total=number, per_source_host=number, per_target_host=number, per_cell_pair=number)

"""Parts that run at the same time: each lane runs its parts one after another, beside the other lanes of its group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby
from threading import Event

from verify.parts import Part

Lanes = list[list[Part]]


def batches(parts: Sequence[Part]) -> list[Lanes]:
    """What runs one after another, in the order of the parts. A part without a lane runs alone."""
    found: list[Lanes] = []
    for (_group, has_lane), some in groupby(parts, key=lambda part: (part.group, part.lane is not None)):
        if has_lane:
            lanes: dict[str | None, list[Part]] = {}
            for part in some:
                lanes.setdefault(part.lane, []).append(part)
            found.append(list(lanes.values()))
        else:
            found += [[[part]] for part in some]
    return found


def minutes(parts: Sequence[Part]) -> float:
    """How long all of them take."""
    return sum(max(sum(part.minutes for part in lane) for lane in lanes) for lanes in batches(parts))


def run(lanes: Lanes, run_part: Callable[[Part, Event], None]) -> None:
    """Runs the lanes until all have ended. ``run_part`` is called in the lane's thread; it ends early when the event is set.

    The event is set by Ctrl-C, or when a call of ``run_part`` raises: the lanes end, and the exception is raised again.
    """
    interrupted = Event()

    def follow(lane: list[Part]) -> None:
        for part in lane:
            if not interrupted.is_set():
                run_part(part, interrupted)

    with ThreadPoolExecutor(len(lanes)) as threads:
        try:
            for lane in as_completed([threads.submit(follow, lane) for lane in lanes]):
                lane.result()
        except BaseException:
            interrupted.set()
            raise

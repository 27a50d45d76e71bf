"""Whose work an operation is: CPU of the parts that aren't ours, and of collecting garbage.

The whole process is measured, in which also the client, Placement and devcloud run. Each call of these is timed by the clock of
the thread that executes it (`time.thread_time`), which doesn't advance while others have the interpreter's lock or the processor.
So shares hold on a busy machine, and inside of callgrind, though seconds do not. What is left is ours, with what the simulated
hosts do.
"""

from __future__ import annotations

import functools
import gc
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from benchmarks.instructions import Spent
from causeway.clients.placement.http import PlacementHttp
from causeway.http.direct import DirectTransport

WHOLE, CLIENT, PLACEMENT, SERVICES, GARBAGE = "whole", "client", "Placement", "other services", "collecting garbage"
# What others than ours do; garbage is collected in any of them.
OTHERS = (CLIENT, PLACEMENT, SERVICES)


class Shares:
    """Seconds of CPU. The thread that makes this is the client."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seconds = dict.fromkeys((PLACEMENT, SERVICES, GARBAGE), 0.0)
        self._asking = {WHOLE: 0.0, CLIENT: 0.0}
        self._here = threading.local()
        self._garbage_since = 0.0

    def install(self, stack: ExitStack) -> None:
        for owner, name, part in ((PlacementHttp, "call", PLACEMENT), (DirectTransport, "send", SERVICES)):
            stack.enter_context(patch.object(owner, name, self._timed(getattr(owner, name), part)))
        gc.callbacks.append(self._on_garbage)
        stack.callback(gc.callbacks.remove, self._on_garbage)

    def look(self, ask: Callable[[], Spent]) -> Spent:
        """What ``ask`` returns, with everybody's seconds so far, those of asking not included. To be called by the client."""
        whole, client = time.process_time(), time.thread_time()
        spent = ask()
        now = {WHOLE: time.process_time(), CLIENT: time.thread_time()}
        self._asking[WHOLE] += now[WHOLE] - whole
        self._asking[CLIENT] += now[CLIENT] - client
        with self._lock:
            return replace(spent, parts=self._seconds | {part: now[part] - self._asking[part] for part in now})

    def _timed(self, original: Callable[..., Any], part: str) -> Callable[..., Any]:
        @functools.wraps(original)
        def timed(*args: Any, **kwargs: Any) -> Any:
            # The network service's report to our API is our work; a service that a service calls is within it.
            if getattr(self._here, "is_timed", False) or "/compute/" in str(getattr(args[-1], "url", "")):
                return original(*args, **kwargs)
            self._here.is_timed, began = True, time.thread_time()
            try:
                return original(*args, **kwargs)
            finally:
                self._here.is_timed = False
                self._add(part, time.thread_time() - began)

        return timed

    def _on_garbage(self, phase: str, _about: Mapping[str, int]) -> None:
        # The thread that collects has the interpreter's lock all the time.
        if phase == "start":
            self._garbage_since = time.thread_time()
        else:
            # Without the lock: this thread may have it.
            self._seconds[GARBAGE] += time.thread_time() - self._garbage_since

    def _add(self, part: str, seconds: float) -> None:
        with self._lock:
            self._seconds[part] += seconds


def of(seconds: Mapping[str, float]) -> dict[str, float]:
    """Each part's share of the whole; empty if nothing was spent."""
    whole = seconds.get(WHOLE, 0.0)
    if whole <= 0:
        return {}
    found = {part: seconds[part] / whole for part in OTHERS}
    return {"ours": max(0.0, 1 - sum(found.values())), **found, GARBAGE: seconds[GARBAGE] / whole}

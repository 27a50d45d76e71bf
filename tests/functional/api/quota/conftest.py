"""Requests at the very same moment."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

WAIT = 20

AtOnce = Callable[..., list[int]]


@pytest.fixture
def at_once(cloud: Any, monkeypatch: pytest.MonkeyPatch) -> AtOnce:
    """Makes requests of which none writes before all are about to. Returns the statuses of the answers, sorted."""

    def make(*requests: Callable[[], Any]) -> list[int]:
        begin, ready, known = cloud.services.api.write, threading.Barrier(len(requests)), threading.local()

        def write() -> Any:
            if not getattr(known, "waited", False):
                known.waited = True
                ready.wait(WAIT)
            return begin()

        with monkeypatch.context() as patched, ThreadPoolExecutor(len(requests)) as pool:
            patched.setattr(cloud.services.api, "write", write)
            return sorted(answer.status for answer in pool.map(lambda request: request(), requests))

    return make

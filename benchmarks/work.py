"""Sees when the result of an operation is visible, and when all work is done, however the operation is carried out."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from causeway.api.app import Entrance
from causeway.devcloud.background.plugging import Plugger
from causeway.rpc import counters, late_answers
from causeway.rpc.server import Dispatcher
from causeway.sagas.keeper import Keeper
from causeway.store.database import Database

_DELETED = "network-vif-deleted"


class Work:
    """What is in hand: requests to our API, RPCs from when they are sent until they have been handled, sagas."""

    def __init__(self, client: str, patience: float) -> None:
        """``client``: the User-Agent of who measures; ``patience``: seconds that anything is waited for."""
        self._client = client
        self._patience = patience
        self._changed = threading.Condition()
        self._in_hand = 0
        self._is_visible: Callable[[], bool] | None = None
        # Seconds that it took to look; the system does nothing else meanwhile.
        self._looked = 0.0
        # Of `time.perf_counter`; of the client's latest request that was not a GET.
        self.arrived = self.answered = 0.0
        # None until what `watch` was told of is visible.
        self.visible: float | None = None

    def install(self, stack: ExitStack, *, hold_news: bool) -> None:
        """To be called before the cloud starts; the stack takes the hooks out again.

        ``hold_news``: the network service tells of deleted ports only when nothing is in hand. It tells at any time, and what
        that costs depends on whether the server is there still.
        """
        for owner, name, make in (
            (Entrance, "__call__", self._on_request),
            (counters, "count", self._on_send),
            (Dispatcher, "dispatch", self._on_dispatch),
            (Keeper, "_take", self._on_take),
            (Keeper, "_run", self._on_run),
            (Database, "write", self._on_write),
            *(((Plugger, "_post", self._on_news),) if hold_news else ()),
        ):
            original = getattr(owner, name)
            stack.enter_context(patch.object(owner, name, functools.wraps(original)(make(original))))

    def watch(self, is_visible: Callable[[], bool]) -> None:
        """Looks after each transaction from now on whether something is visible; how long that takes is not in the times.

        What ``is_visible`` asks must not be counted.
        """
        with self._changed:
            self._is_visible, self._looked, self.visible = is_visible, 0.0, None

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        with self._changed:
            if not self._changed.wait_for(condition, self._patience):
                raise TimeoutError(f"waited for {what} for {self._patience:.0f} seconds")

    def is_done(self) -> bool:
        return not self._in_hand

    def _begin(self) -> None:
        with self._changed:
            self._in_hand += 1

    def _end(self) -> None:
        with self._changed:
            self._in_hand -= 1
            self._changed.notify_all()

    def _on_request(self, original: Any) -> Any:
        def hooked(app: Any, environ: dict[str, Any], start_response: Any) -> Any:
            is_ours = environ.get("HTTP_USER_AGENT") == self._client and environ["REQUEST_METHOD"] != "GET"
            if is_ours:
                self.arrived = time.perf_counter()
            self._begin()
            try:
                return original(app, environ, start_response)
            finally:
                if is_ours:
                    self.answered = time.perf_counter()
                self._end()

        return hooked

    def _on_send(self, original: Any) -> Any:
        def hooked(kind: str, topic: str, method: str) -> None:
            original(kind, topic, method)
            # Only conductors that stop send to all of a topic.
            if kind != "fanout":
                self._begin()

        return hooked

    def _on_dispatch(self, original: Any) -> Any:
        def hooked(dispatcher: Any, incoming: Any) -> Any:
            try:
                return original(dispatcher, incoming)
            finally:
                # What comes late goes to all who listen.
                if incoming.message.get("namespace") != late_answers.NAMESPACE:
                    self._end()

        return hooked

    def _on_take(self, original: Any) -> Any:
        def hooked(keeper: Any, *args: Any) -> Any:
            is_taken = False
            self._begin()
            try:
                is_taken = original(keeper, *args)
                return is_taken
            finally:
                if not is_taken:
                    self._end()

        return hooked

    def _on_run(self, original: Any) -> Any:
        def hooked(keeper: Any, *args: Any) -> Any:
            try:
                return original(keeper, *args)
            finally:
                self._end()

        return hooked

    def _on_write(self, original: Any) -> Any:
        @contextmanager
        def hooked(database: Any) -> Iterator[Any]:
            with original(database) as connection:
                yield connection
            committed, is_visible = time.perf_counter(), self._is_visible
            if is_visible is None:
                return
            found = is_visible()
            with self._changed:
                if self._is_visible is is_visible and found:
                    self._is_visible, self.visible = None, committed - self._looked
                    self._changed.notify_all()
                self._looked += time.perf_counter() - committed

        return hooked

    def _on_news(self, original: Any) -> Any:
        def hooked(plugger: Any, events: list[dict[str, Any]], attempt: int) -> None:
            if any(event["name"] == _DELETED for event in events):
                self.wait(self.is_done, "the end of a deletion")
            original(plugger, events, attempt)

        return hooked

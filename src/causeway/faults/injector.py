"""Carries out the rules of fault injection when the code reaches a point. Does nothing, and reads nothing, before `install`."""

from __future__ import annotations

import contextvars
import fcntl
import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from oslo_context import context as oslo_context

from causeway import errors

LOG = logging.getLogger(__name__)

CRASH_STATUS = 70
ACTIONS = ("error", "refuse", "crash", "hang", "delay")
# Seconds between two checks of the rules by a delayed thread: nobody notifies it of a changed file.
LOOK_EVERY = 0.05


@dataclass(frozen=True)
class Rule:
    """What happens at a point. ``seconds`` of a hang or a delay; ``times`` None: always; ``hosts`` None: everywhere."""

    action: str
    seconds: float = 0.0
    times: int | None = None
    hosts: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Scope:
    """What the current thread works for."""

    host: str | None = None
    operation_id: str | None = None
    method: str | None = None


NOTHING = Scope()
_scope: contextvars.ContextVar[Scope] = contextvars.ContextVar("fault_scope", default=NOTHING)


class Injector:
    """The rules of one file. ``on_reach`` is called with every point that is reached; tests use it to record a path."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._hits = file.with_name(file.name + ".hits")
        self._lock = threading.Lock()
        self._stamp: tuple[int, int] | None = None
        self._rules: dict[str, Rule] = {}
        self._hanging: set[str] = set()
        self._stopping = threading.Event()
        self.on_reach: Callable[[str, Scope], None] | None = None

    def reach(self, point: str, scope: Scope) -> str | None:
        """Follows the point's rule, if it has one: crashes, hangs or delays here; returns "error" or "refuse"."""
        if self.on_reach is not None:
            self.on_reach(point, scope)
        rule = self._current().get(point)
        if rule is None or (rule.hosts is not None and scope.host not in rule.hosts):
            return None
        if not self._take(point, rule, scope):
            return None
        LOG.warning("Fault point %s: %s", point, rule)
        if rule.action == "crash":
            os._exit(CRASH_STATUS)
        if rule.action == "hang":
            self._hang(scope.operation_id, rule.seconds)
        elif rule.action == "delay":
            self._delay(point, rule)
        return rule.action if rule.action in ("error", "refuse") else None

    def is_hanging(self, operation_id: str) -> bool:
        with self._lock:
            return operation_id in self._hanging

    def close(self) -> None:
        """Ends all hangs and delays."""
        self._stopping.set()

    def _delay(self, point: str, rule: Rule) -> None:
        """Waits as long as the rule says, or until the rule is removed from the file."""
        end = time.monotonic() + rule.seconds
        while (left := end - time.monotonic()) > 0 and not self._stopping.wait(min(left, LOOK_EVERY)):
            if self._current().get(point) != rule:
                return

    def _hang(self, operation_id: str | None, seconds: float) -> None:
        with self._lock:
            if operation_id is not None:
                self._hanging.add(operation_id)
        self._stopping.wait(seconds)
        with self._lock:
            self._hanging.discard(operation_id or "")

    def _current(self) -> dict[str, Rule]:
        with self._lock:
            try:
                found = self._file.stat()
            except FileNotFoundError:
                self._stamp, self._rules = None, {}
                return self._rules
            stamp = (found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                self._stamp = stamp
                try:
                    self._rules = parse(self._file.read_text())
                except (ValueError, yaml.YAMLError) as error:
                    LOG.error("%s can't be parsed, so no fault is injected: %s", self._file, error)
                    self._rules = {}
            return self._rules

    def _take(self, point: str, rule: Rule, scope: Scope) -> bool:
        """Records a use of the rule and returns True; returns False if it was used ``times`` times before."""
        with self._lock, self._hits.open("a+") as hits:
            fcntl.flock(hits, fcntl.LOCK_EX)
            hits.seek(0)
            used = sum(1 for line in hits if json.loads(line)["point"] == point)
            if rule.times is not None and used >= rule.times:
                return False
            context = oslo_context.get_current()
            record = {
                "at": time.time(),
                "point": point,
                "action": rule.action,
                "host": scope.host,
                "move": scope.operation_id,
                "request": context.request_id if context is not None else None,
            }
            hits.write(json.dumps(record) + "\n")
        return True


def parse(text: str) -> dict[str, Rule]:
    """Returns the rules by point. Raises ValueError, which says what is wrong."""
    content = yaml.safe_load(text) or {}
    if not isinstance(content, dict):
        raise ValueError("it must map points to rules")
    return {str(point): _rule(str(point), value) for point, value in content.items()}


def _rule(point: str, value: Any) -> Rule:
    given = {value: True} if isinstance(value, str) else value
    if not isinstance(given, dict):
        raise ValueError(f"{point}: its rule must have one of {', '.join(ACTIONS)}")
    unknown = set(given) - {*ACTIONS, "times", "host"}
    actions = [action for action in ACTIONS if action in given]
    if unknown or len(actions) != 1:
        raise ValueError(
            f"{point}: its rule must have exactly one of {', '.join(ACTIONS)}, and may have times and host"
        )
    action, times = actions[0], given.get("times")
    if times is not None and (not isinstance(times, int) or times < 1):
        raise ValueError(f"{point}: times must be a number from 1 on")
    seconds = given[action] if action in ("hang", "delay") else 0.0
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds < 0:
        raise ValueError(f"{point}: {action} takes a number of seconds")
    hosts = given.get("host")
    return Rule(action, float(seconds), times, tuple([hosts] if isinstance(hosts, str) else hosts) if hosts else None)


_active: Injector | None = None


def install(file: Path) -> Injector:
    """Switches fault injection on in this process, with the rules of ``file``."""
    global _active
    _active = Injector(file)
    return _active


def uninstall() -> None:
    global _active
    if _active is not None:
        _active.close()
    _active = None


def is_active() -> bool:
    return _active is not None


@contextmanager
def scope(host: str | None = None, operation_id: str | None = None, method: str | None = None) -> Iterator[None]:
    """Sets what the thread works for, until the block ends. Fields that are not given keep their values."""
    if _active is None:
        yield
        return
    given = {"host": host, "operation_id": operation_id, "method": method}
    token = _scope.set(replace(_scope.get(), **{name: value for name, value in given.items() if value is not None}))
    try:
        yield
    finally:
        _scope.reset(token)


def fails(point: str) -> str | None:
    """Reaches a point. Returns "error" or "refuse" if the caller has to fail; how it fails is up to the caller."""
    injector = _active
    return injector.reach(point, _scope.get()) if injector is not None else None


def reach(point: str) -> None:
    """Reaches a point of a step or a compute; raises UnexpectedFailure or ServiceRefused if it is to fail."""
    failure = fails(point)
    if failure == "refuse":
        raise errors.ServiceRefused("A refusal was injected.", details=f"fault point {point}")
    if failure is not None:
        raise errors.UnexpectedFailure("A fault was injected.", details=f"fault point {point}")


def is_hanging(operation_id: str) -> bool:
    """Whether the move hangs at a point. Then nobody renews its lease."""
    injector = _active
    return injector is not None and injector.is_hanging(operation_id)


def method() -> str | None:
    """Returns the method of a compute that the current thread runs; None: it runs none."""
    return _scope.get().method

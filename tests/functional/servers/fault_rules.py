"""Faults of a cloud that runs elsewhere, in the files of rules that its processes read: fault injection's and devcloud's."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import pytest
import yaml

from causeway.devcloud import Fault
from causeway.faults.points import every_point
from causeway.rpc.transport import Verdict

SIDES = {Verdict.LOSE_REQUEST: "request", Verdict.LOSE_REPLY: "reply"}
# Seconds: a call that is held longer continues, so that no process is stuck after a test that ended badly.
HELD = 300
# Seconds between two checks of what other processes wrote.
PAUSE = 0.05


def refuse(what: str) -> NoReturn:
    pytest.skip(f"by URL: {what}")


class Reached(threading.Event):
    """Set when another process has reached a point once more."""

    def __init__(self, rules: FaultRules, point: str) -> None:
        super().__init__()
        self._rules, self._point = rules, point
        self._before = rules.hits(point)

    def is_set(self) -> bool:
        return self._rules.hits(self._point) > self._before

    def wait(self, timeout: float | None = None) -> bool:
        """As `threading.Event.wait`; ``timeout`` in seconds."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self.is_set():
            if end is not None and time.monotonic() >= end:
                return False
            time.sleep(PAUSE)
        return True


class FaultRules:
    """``faults``: the file of ``[fault_injection]``; ``devcloud``: that of devcloud. None: there is no such thing."""

    def __init__(self, faults: Path | None, devcloud: Path | None) -> None:
        self._faults, self._devcloud = faults, devcloud
        self._hits = faults.with_name(faults.name + ".hits") if faults is not None else None
        self._rules: dict[str, Any] = {}
        self._devcloud_rules: list[dict[str, Any]] = []

    @property
    def is_enabled(self) -> bool:
        """Whether the cloud's processes inject faults."""
        return self._faults is not None

    @property
    def has_devcloud(self) -> bool:
        """Whether devcloud is around, not the real services."""
        return self._devcloud is not None

    def fail(self, fault: Fault) -> None:
        """A service around does not do what it is asked for."""
        if self._devcloud is None:
            refuse("a fault of devcloud's is wanted, and the real services are there")
        self._devcloud_rules.append({name: value for name, value in asdict(fault).items() if name[0] != "_"})
        _write(self._devcloud, self._devcloud_rules)

    def lose(self, methods: tuple[str, ...], verdict: Verdict, times: int) -> None:
        """The next calls of an RPC method (of several: so many of each) are lost, or their answers."""
        for method in methods:
            self._set(_point(method, SIDES[verdict]), error=True, times=times)

    def break_driver(self, hosts: list[str], method: str, times: int) -> None:
        """The hypervisors of hosts fail in a method, so often."""
        point = f"driver.{method}.before"
        if point not in every_point():
            refuse(f"there is no fault point {point}")
        self._set(point, error=True, times=times, host=hosts)

    def cut_offers(self) -> None:
        """No host can fetch disks from another one."""
        self._set("disk.fetch.connect", error=True)

    @contextmanager
    def held(self, method: str) -> Iterator[Reached]:
        """Within the block the next call of an RPC method stays with its sender; what is yielded is set when it was made."""
        point = _point(method, "request")
        reached = Reached(self, point)
        self._set(point, delay=HELD, times=1)
        try:
            yield reached
        finally:
            self._rules.pop(point, None)
            if self._faults is not None:
                _write(self._faults, self._rules)

    def hits(self, point: str) -> int:
        """How often a rule was applied at a point since `heal`."""
        if self._hits is None or not self._hits.exists():
            return 0
        lines = self._hits.read_text().splitlines(keepends=True)
        return sum(1 for line in lines if line.endswith("\n") and json.loads(line)["point"] == point)

    def heal(self) -> None:
        """Undoes every fault."""
        self._rules.clear()
        self._devcloud_rules.clear()
        for path in (self._faults, self._devcloud, self._hits):
            if path is not None:
                path.unlink(missing_ok=True)

    def _set(self, point: str, *, times: int | None = None, **rule: Any) -> None:
        if self._faults is None:
            refuse("fault injection is not enabled")
        if times is not None:
            # Earlier ones of the same test are counted, too.
            rule["times"] = times + self.hits(point)
        self._rules[point] = rule
        _write(self._faults, self._rules)


class NetworkSwitches:
    """How devcloud's network service behaves: `causeway.devcloud.switches`, in the file that devcloud reads."""

    USUAL: Mapping[str, Any] = MappingProxyType(
        {"plug_delay": 0.0, "unpluggable_hosts": frozenset(), "port_resource_request_groups": True}
    )

    def __init__(self, file: Path) -> None:
        object.__setattr__(self, "_file", file)
        object.__setattr__(self, "_set", {})

    def __getattr__(self, name: str) -> Any:
        if name not in self.USUAL:
            refuse(f"reaches into a process of the cloud (devcloud.{name})")
        return self._set.get(name, self.USUAL[name])

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.USUAL:
            refuse(f"sets devcloud.{name} to {value}")
        self._set[name] = value
        _write(self._file, {known: list(to) if isinstance(to, set) else to for known, to in self._set.items()})

    def restore(self) -> None:
        """All as usual."""
        self._set.clear()
        self._file.unlink(missing_ok=True)


def _point(method: str, side: str) -> str:
    """The one fault point of an RPC method."""
    found = [point for point in every_point() if point.startswith("rpc.") and point.endswith(f".{method}.{side}")]
    if len(found) != 1:
        refuse(f"there is not one fault point for losing or holding {method}")
    return found[0]


def _write(path: Path, content: Any) -> None:
    """Whole: others read it at any time."""
    temporary = path.with_suffix(".new")
    temporary.write_text(yaml.safe_dump(content))
    temporary.replace(path)

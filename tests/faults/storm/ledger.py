"""What the users of one server asked for and were answered, and what is allowed to be there because of it."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from causeway.model.instance import Instance
from tests.faults.answers import Answer

EXISTS = ("exists", "")
# What may be asked for by one user at a time, so that nobody contradicts themselves.
LIFE = "life"


@dataclass(frozen=True)
class Asked:
    """A request of a user. ``which``, ``value``: what it is about, and what is to be there; ``action``: as histories call it."""

    deed: str
    answer: Answer
    which: str = ""
    value: Any = None
    action: str | None = None


@dataclass(frozen=True)
class WantedImage:
    """``mark``: what was on the server's disk when it was asked for; None: nobody knows. ``is_backup``: older ones may go."""

    name: str
    answer: Answer
    mark: str | None
    is_backup: bool = False


@dataclass
class Ledger:
    """One server. ``allowed``: (concern, which) -> the values that it may have by now; None: it is not there.

    ``uuid`` None: no answer gave it yet. ``mark``: what must be on its root disk; None: nobody knows. ``host_died``: a host of it
    was switched off, and its guest with it.
    """

    name: str
    on_volume: bool
    uuid: str | None = None
    allowed: dict[tuple[str, str], set[Any]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    images: list[WantedImage] = field(default_factory=list)
    mark: str | None = None
    writes: int = 0
    host_died: bool = False

    def note(self, asked: Asked) -> None:
        """For requests whose answers promise nothing but that they are in the server's history, or nothing at all."""
        self.asked.append(asked)

    def note_value(self, asked: Asked) -> None:
        """For requests after which the concern has this value."""
        self.asked.append(asked)
        key = (asked.deed, asked.which)
        if asked.answer.is_accepted:
            self.allowed[key] = {asked.value}
        elif asked.answer.is_lost:
            self.allowed.setdefault(key, {None}).add(asked.value)

    def may_be(self, concern: str, which: str) -> set[Any]:
        return self.allowed.get((concern, which), {None})

    @property
    def may_exist(self) -> bool:
        return True in self.may_be(*EXISTS)

    @property
    def answers(self) -> Counter[str]:
        return Counter(f"{asked.deed} {asked.answer.kind}" for asked in self.asked)

    @property
    def history(self) -> list[str]:
        """Lines for whoever looks for a cause."""
        return [
            f"{each.deed} {each.which} {each.value}: {each.answer.status} {each.answer.request_id}"
            f" {'' if each.answer.is_accepted else each.answer.text[:200]}"
            for each in self.asked
        ]


@dataclass
class Account:
    """A user with one server at a time, and what they made for it themselves."""

    number: int
    volumes: tuple[str, ...]
    ports: tuple[str, ...]
    ledgers: list[Ledger] = field(default_factory=list)
    _locks: dict[str, threading.Lock] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    @property
    def ledger(self) -> Ledger:
        """Of the present server, or of the last one."""
        return self.ledgers[-1]

    def lock(self, concern: str) -> threading.Lock:
        with self._guard:
            return self._locks.setdefault(concern, threading.Lock())


@dataclass(frozen=True)
class Seen:
    """A server as somebody who is about to ask for something sees it. ``record`` None: it has none in a cell."""

    is_building: bool
    is_busy: bool
    record: Instance | None
    power_is_off: bool = False
    is_on_dead_host: bool = False

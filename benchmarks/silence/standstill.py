"""For how long the hypervisors have a guest stand still while it goes from one to the other, by their own events."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import libvirt

from causeway.virt.libvirt.hypervisor_events import EVENT_LOOP

_NAMES = {
    libvirt.VIR_DOMAIN_EVENT_DEFINED: "defined",
    libvirt.VIR_DOMAIN_EVENT_UNDEFINED: "undefined",
    libvirt.VIR_DOMAIN_EVENT_STARTED: "started",
    libvirt.VIR_DOMAIN_EVENT_SUSPENDED: "suspended",
    libvirt.VIR_DOMAIN_EVENT_RESUMED: "resumed",
    libvirt.VIR_DOMAIN_EVENT_STOPPED: "stopped",
}


@dataclass(frozen=True)
class Event:
    """``at``: of `time.monotonic`; ``name``: what libvirt says of the guest."""

    at: float
    host: str
    name: str


@dataclass
class GuestEvents:
    """What the hypervisors have said of one guest."""

    uuid: str
    _events: list[Event] = field(default_factory=list)
    _news: threading.Condition = field(default_factory=threading.Condition)

    def since(self, moment: float) -> list[Event]:
        with self._news:
            return [event for event in self._events if event.at >= moment]

    def wait_for(self, host: str, name: str, since: float, patience: float) -> bool:
        def is_there() -> bool:
            return any((event.host, event.name) == (host, name) and event.at >= since for event in self._events)

        with self._news:
            return self._news.wait_for(is_there, patience)

    def note(self, host: str, uuid: str, kind: int) -> None:
        at = time.monotonic()
        if uuid == self.uuid:
            with self._news:
                self._events.append(Event(at, host, _NAMES.get(kind, str(kind))))
                self._news.notify_all()


@contextmanager
def listening(uris: Mapping[str, str], uuid: str) -> Iterator[GuestEvents]:
    """``uris``: host -> where its libvirtd is."""
    found = GuestEvents(uuid)

    def heard(host: str, _connection: Any, domain: Any, kind: int, _detail: int, _opaque: object) -> None:
        found.note(host, domain.UUIDString(), kind)

    EVENT_LOOP.acquire()
    try:
        with ExitStack() as opened:
            for host, uri in uris.items():
                connection = libvirt.open(uri)
                opened.callback(connection.close)
                number = connection.domainEventRegisterAny(
                    None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, partial(heard, host), None
                )
                opened.callback(connection.domainEventDeregisterAny, number)
            yield found
    finally:
        EVENT_LOOP.release()


def standstill(events: list[Event], source: str, target: str) -> tuple[float, float] | None:
    """From when to when the guest stood still: paused at its source, until it ran at its target. None: it is not known.

    The target resumes it last. A source may have been paused and resumed before, without leaving.
    """
    resumed = [event.at for event in events if (event.host, event.name) == (target, "resumed")]
    if not resumed:
        return None
    began: float | None = None
    for event in events:
        if event.host != source or event.at > resumed[-1]:
            continue
        if event.name == "resumed":
            began = None
        elif event.name in ("suspended", "stopped") and began is None:
            began = event.at
    return None if began is None else (began, resumed[-1])

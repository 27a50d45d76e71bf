"""libvirt's events: the event loop, and waiting until something happens to a guest.

A process has one event loop of libvirt. It runs in the thread "libvirt-events" as long as it has users.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import libvirt

_JOIN_SECONDS = 10.0


class EventLoop:
    """Counts its users: the first starts the thread, the last ends it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._thread: threading.Thread | None = None
        self._timer: int | None = None

    def acquire(self) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            if self._timer is None:
                libvirt.virEventRegisterDefaultImpl()
                # Without this libvirt would also write every error to stderr.
                libvirt.registerErrorHandler(lambda _context, _error: None, None)
                # A timer that never ends by itself; setting it to 0 wakes the loop.
                self._timer = libvirt.virEventAddTimeout(-1, self._woken, None)
            self._thread = threading.Thread(target=self._run, name="libvirt-events", daemon=True)
            self._thread.start()

    def release(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users:
                return
            libvirt.virEventUpdateTimeout(self._timer, 0)
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_JOIN_SECONDS)

    def _woken(self, timer: int, _opaque: object) -> None:
        libvirt.virEventUpdateTimeout(timer, -1)

    def _run(self) -> None:
        while self._users:
            libvirt.virEventRunDefaultImpl()


EVENT_LOOP = EventLoop()


class GuestEvents:
    """Events of one connection's guests, to be waited for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], list[threading.Event]] = defaultdict(list)

    def register(self, connection: Any) -> None:
        connection.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._lifecycle, None)
        connection.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED, self._device, None)
        connection.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED, self._device, None)
        connection.domainEventRegisterAny(None, libvirt.VIR_DOMAIN_EVENT_ID_JOB_COMPLETED, self._job, None)

    @contextmanager
    def stopped(self, uuid: str) -> Iterator[threading.Event]:
        """An event that is set when the guest stops while the context lasts."""
        with self._watch(uuid, "stopped") as event:
            yield event

    @contextmanager
    def device_answered(self, uuid: str) -> Iterator[threading.Event]:
        """An event that is set when the guest releases a device, or refuses to."""
        with self._watch(uuid, "device") as event:
            yield event

    @contextmanager
    def job_ended(self, uuid: str) -> Iterator[threading.Event]:
        """An event that is set when a job of the guest (such as a backup) ends, with or without success."""
        with self._watch(uuid, "job") as event:
            yield event

    @contextmanager
    def _watch(self, uuid: str, what: str) -> Iterator[threading.Event]:
        event = threading.Event()
        with self._lock:
            self._waiting[uuid, what].append(event)
        try:
            yield event
        finally:
            with self._lock:
                self._waiting[uuid, what].remove(event)
                if not self._waiting[uuid, what]:
                    del self._waiting[uuid, what]

    def _lifecycle(self, _connection: Any, domain: Any, event: int, _detail: int, _opaque: object) -> None:
        if event in (libvirt.VIR_DOMAIN_EVENT_STOPPED, libvirt.VIR_DOMAIN_EVENT_CRASHED):
            self._set(domain.UUIDString(), "stopped")

    def _device(self, _connection: Any, domain: Any, _alias: str, _opaque: object) -> None:
        self._set(domain.UUIDString(), "device")

    def _job(self, _connection: Any, domain: Any, _stats: dict[str, Any], _opaque: object) -> None:
        self._set(domain.UUIDString(), "job")

    def _set(self, uuid: str, what: str) -> None:
        with self._lock:
            for event in self._waiting.get((uuid, what), ()):
                event.set()

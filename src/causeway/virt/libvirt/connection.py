"""The connection to libvirtd: opened when it is needed, and again after libvirtd was restarted. Every call has a timeout."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Generic, TypeVar

import libvirt
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from causeway.errors import GuestFailed
from causeway.virt.libvirt.hypervisor_events import EVENT_LOOP, GuestEvents

_T = TypeVar("_T")

_WORKERS = 16
# libvirtd that does not answer 3 times, 5 s apart, is disconnected; calls that hang then fail.
_KEEPALIVE_INTERVAL, _KEEPALIVE_COUNT = 5, 3
# A libvirtd that is being restarted is back after this, or it is down.
_CONNECT_SECONDS = 10.0


class Connection:
    """Calls libvirtd at ``uri``. ``timeout``: seconds for a call that says nothing else. ``name`` is for the names of threads."""

    def __init__(self, uri: str, *, name: str, timeout: float) -> None:
        self.events = GuestEvents()
        self._uri = uri
        self._timeout = timeout
        self._lock = threading.Lock()
        self._open: Any = None
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix=f"libvirt-{name}")

    def start(self) -> None:
        EVENT_LOOP.acquire()
        self.call("connect", lambda connection: connection.getVersion())

    def close(self) -> None:
        # A libvirtd that hangs while it is connected to holds the lock: its connection is left to the end of the process.
        if self._lock.acquire(timeout=_CONNECT_SECONDS):
            try:
                connection, self._open = self._open, None
            finally:
                self._lock.release()
            if connection is not None:
                _close(connection)
        self._pool.shutdown(wait=False, cancel_futures=True)
        EVENT_LOOP.release()

    def call(
        self, what: str, function: Callable[[Any], _T], *, timeout: float | None = None, again: bool = False
    ) -> _T:
        """``function(connection)``, in another thread. ``what`` completes "The hypervisor failed to ...".

        ``timeout`` in seconds (None: the connection's). A call that did not begin within it is not begun any more: a caller
        who was refused must not find the guest started later. ``again``: the function changes nothing, or nothing more when
        called twice, so it is repeated if its connection is lost, or if a guest disappears after the function has found it.

        Raises `GuestFailed` if the hypervisor refuses, or does not answer in time.
        """
        seconds = timeout if timeout is not None else self._timeout
        future = self._pool.submit(self._with_connection, function, again, time.monotonic() + seconds)
        try:
            return future.result(seconds)
        except FutureTimeoutError as error:
            future.cancel()
            raise GuestFailed(f"The hypervisor did not answer within {seconds:.0f} s when asked to {what}.") from error
        except libvirt.libvirtError as error:
            raise GuestFailed(f"The hypervisor failed to {what}.", details=str(error)) from error

    def call_aside(self, what: str, function: Callable[[Any], _T], *, timeout: float | None = None) -> _T:
        """As `call`, over a connection of its own: libvirtd takes few calls of a connection at a time, so one that may take
        long, or hang, would keep all others waiting. One that does not answer in time is left to itself.
        """
        seconds = timeout if timeout is not None else self._timeout
        call = AsideCall(self._uri, function, begin_within=seconds)
        call.start()
        if not call.ended.wait(seconds):
            raise GuestFailed(f"The hypervisor did not answer within {seconds:.0f} s when asked to {what}.")
        if isinstance(call.error, libvirt.libvirtError):
            raise GuestFailed(f"The hypervisor failed to {what}.", details=str(call.error)) from call.error
        return call.answer()

    def begin_aside(self, function: Callable[[Any], _T]) -> AsideCall[_T]:
        """Starts the same call and does not wait: ``ended`` of the result is set when it is over. It keeps no process alive."""
        call = AsideCall(self._uri, function)
        call.start()
        return call

    def _with_connection(self, function: Callable[[Any], _T], again: bool, end: float) -> _T:
        """``end``: when the caller stops waiting, on the clock of `time.monotonic`."""
        connection = self._connected()
        _check_in_time(end)
        try:
            return function(connection)
        except libvirt.libvirtError as error:
            if _is_lost(connection):
                self._discard(connection)
            elif error.get_error_code() != libvirt.VIR_ERR_NO_DOMAIN:
                raise
            if not again:
                raise
        connection = self._connected()
        _check_in_time(end)
        return function(connection)

    def _connected(self) -> Any:
        with self._lock:
            if self._open is not None and not _is_lost(self._open):
                return self._open
            attempts = Retrying(
                retry=retry_if_exception_type(libvirt.libvirtError),
                wait=wait_fixed(0.1),
                stop=stop_after_delay(_CONNECT_SECONDS),
                reraise=True,
            )
            self._open = attempts(self._connect)
            return self._open

    def _connect(self) -> Any:
        connection = libvirt.open(self._uri)
        connection.setKeepAlive(_KEEPALIVE_INTERVAL, _KEEPALIVE_COUNT)
        self.events.register(connection)
        return connection

    def _discard(self, connection: Any) -> None:
        with self._lock:
            if self._open is connection:
                self._open = None
        _close(connection)


class AsideCall(threading.Thread, Generic[_T]):
    """A call over a connection of its own. ``begin_within``: seconds; later it is not begun any more. None: it always is."""

    def __init__(self, uri: str, function: Callable[[Any], _T], *, begin_within: float | None = None) -> None:
        super().__init__(name="libvirt-aside", daemon=True)
        self._end = None if begin_within is None else time.monotonic() + begin_within
        self.ended = threading.Event()
        self.error: Exception | None = None
        self._uri = uri
        self._function = function
        self._answers: list[_T] = []

    def run(self) -> None:
        try:
            connection = libvirt.open(self._uri)
            try:
                connection.setKeepAlive(_KEEPALIVE_INTERVAL, _KEEPALIVE_COUNT)
                if self._end is not None:
                    _check_in_time(self._end)
                self._answers.append(self._function(connection))
            finally:
                _close(connection)
        except Exception as error:  # noqa: BLE001 - whoever waits raises it
            self.error = error
        finally:
            self.ended.set()

    def do_not_begin(self) -> None:
        """Nobody waits for the call: if it has not reached the hypervisor yet, it does nothing there."""
        self._end = time.monotonic()

    def answer(self) -> _T:
        """Of a call that ended; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self._answers[0]


def _check_in_time(end: float) -> None:
    """Raises `GuestFailed` for a call whose caller does not wait any more."""
    if time.monotonic() >= end:
        raise GuestFailed("The hypervisor could be reached only when nobody waited for it any more.")


def _is_lost(connection: Any) -> bool:
    try:
        return not connection.isAlive()
    except libvirt.libvirtError:
        return True


def _close(connection: Any) -> None:
    try:
        connection.close()
    except libvirt.libvirtError:
        # It was lost already; there is nothing more to close.
        return

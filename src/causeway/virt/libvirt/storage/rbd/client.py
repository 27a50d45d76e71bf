"""Asks workers of RBD, on behalf of a compute: each call ends within a limit, whatever Ceph or the worker does.

librados has threads, and may block without end while a part of the cluster does not answer; a client that was blocklisted stays
so until its process ends. So no compute loads it: a worker is a process of its own, which is killed when it is late. It does one
call at a time, so one slow call makes no other one wait, and the death of one is the failure of one.

What may have happened or not is not asked for twice: whoever lost a disk in the meantime may not change it any more. Only calls
that change nothing are.
"""

from __future__ import annotations

import errno
import logging
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from causeway.errors import Misconfigured, StorageUnreachable
from causeway.virt.libvirt.storage.rbd import protocol
from causeway.virt.libvirt.storage.rbd.protocol import Access, Refused

LOG = logging.getLogger(__name__)

_T = TypeVar("_T")
_WORKER = (sys.executable, "-P", "-W", "ignore", "-m", "causeway.virt.libvirt.storage.rbd.worker")
_END_SECONDS = 10.0
# Calls at a time: short ones, and those that touch every object of a disk.
_SHORT, _LONG, _IDLE = 4, 4, 2
_READS = (protocol.Describe, protocol.Read, protocol.Names, protocol.Changes, protocol.Use, protocol.Monitors)
_WHOLE_DISK = (protocol.RollBack, protocol.Remove, protocol.Flatten, protocol.Changes)
_WRONG_CONFIGURATION = frozenset(
    (errno.ENOENT, errno.EACCES, errno.EPERM, errno.EINVAL, errno.ENOSYS, errno.EISDIR, errno.ENOTDIR)
)
_BLOCKLISTED = errno.ESHUTDOWN
_LOST = frozenset((errno.ESHUTDOWN, errno.ETIMEDOUT, errno.ENOTCONN))
_TAIL = 2000


@dataclass(frozen=True)
class Limits:
    """Seconds for a worker that starts, a call that changes nothing, another one, and one that touches each object of a disk."""

    start: float
    read: float
    write: float
    whole_disk: float

    @classmethod
    def of(cls, access: Access, disk_timeout: float) -> Limits:
        """Limits that leave time for Ceph's own timeouts, and for a busy host."""
        own = access.connect_timeout + access.request_timeout
        # What a killed process has open can be changed after 30 s.
        return cls(start=own + 20, read=own + 10, write=own + 50, whole_disk=max(own + 50, disk_timeout))


class _Gone(Exception):
    """A worker ended without an answer."""


class _Late(Exception):
    """A worker has not answered in time."""


class RbdClient:
    """``worker``: the words that start one."""

    def __init__(self, access: Access, limits: Limits, worker: Sequence[str] = _WORKER) -> None:
        self.access = access
        self._limits = limits
        self._command = [*worker, msgspec.json.encode(access).decode()]
        self._turns = {False: threading.BoundedSemaphore(_SHORT), True: threading.BoundedSemaphore(_LONG)}
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._fsid: str | None = None
        #: how often somebody was locked out. A worker that has not seen it may let them write a little longer.
        self._fences = 0
        #: set when the compute stops: nobody waits for others any more
        self.stopping = threading.Event()

    @property
    def fsid(self) -> str:
        """The cluster's id. Raises as `ask` does, if it is not known yet."""
        if self._fsid is None:
            self.ask(protocol.Names(), list[str])
            assert self._fsid is not None
        return self._fsid

    def ask(self, call: protocol.Call, answer: type[_T] | Any) -> _T:
        """What Ceph answers to a call, as ``answer``.

        Raises `Refused` with Ceph's errno, `StorageUnreachable` if there is no answer in time (the call may have been done, or
        not), and `Misconfigured` if this host can't reach the pool as it is configured.
        """
        end = time.monotonic() + self._seconds(call)
        line = msgspec.json.encode(call) + b"\n"
        with self._turn(call, end):
            # A worker that waited for work may have been blocklisted or killed since.
            for last in (not isinstance(call, _READS), True):
                with self._worker(end) as worker:
                    try:
                        answered = worker.ask(line, end)
                    except _Gone as gone:
                        if last:
                            raise self._unreachable("broke off", f"the worker ended: {gone}", call) from None
                        continue
                    except _Late:
                        raise self._unreachable("did not answer in time", "the worker was killed", call) from None
                    failed = answered.failed
                    worker.usable = failed is None or failed.number not in _LOST
                    if isinstance(call, protocol.Blocklist):
                        self._seen_by(worker)
                    if failed is None:
                        return msgspec.json.decode(answered.done, type=answer)
                    if failed.number == _BLOCKLISTED and not last:
                        continue
                    if failed.number in _LOST:
                        why = "has locked this host out" if failed.number == _BLOCKLISTED else "did not answer in time"
                        raise self._unreachable(why, failed.text, call)
                    raise Refused(failed.number, failed.text)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        """Ends the workers that have nothing to do, and what waits for others."""
        self.stopping.set()
        with self._lock:
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.end()

    def _seconds(self, call: protocol.Call) -> float:
        if isinstance(call, _WHOLE_DISK):
            return self._limits.whole_disk
        return self._limits.read if isinstance(call, _READS) else self._limits.write

    @contextmanager
    def _turn(self, call: protocol.Call, end: float) -> Iterator[None]:
        turn = self._turns[isinstance(call, _WHOLE_DISK)]
        if not turn.acquire(timeout=max(0.0, end - time.monotonic())):
            raise self._unreachable("is busy", "too many calls wait for it", call)
        try:
            yield
        finally:
            turn.release()

    @contextmanager
    def _worker(self, end: float) -> Iterator[_Worker]:
        """A worker for one call. It is kept for others only if somebody says that it is `usable`."""
        worker = self._idle_worker() or self._started(end)
        worker.usable = False
        try:
            yield worker
        finally:
            kept = False
            if worker.usable:
                with self._lock:
                    is_current = worker.fences == self._fences
                    kept = is_current and len(self._idle) < _IDLE and not self.stopping.is_set()
                    if kept:
                        self._idle.append(worker)
            if not kept:
                worker.end()

    def _seen_by(self, worker: _Worker) -> None:
        """Has only this worker, and new ones, do what follows: they have the cluster's map of now."""
        with self._lock:
            self._fences += 1
            worker.fences = self._fences
            idle, self._idle = self._idle, []
        for each in idle:
            each.end()

    def _idle_worker(self) -> _Worker | None:
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None or worker.is_alive:
                return worker
            worker.end()

    def _started(self, end: float) -> _Worker:
        worker = _Worker(self._command, self._fences)
        try:
            answered = worker.read(min(end, time.monotonic() + self._limits.start))
            if answered.failed is not None:
                raise self._not_reached(answered.failed)
            ready = msgspec.json.decode(answered.done, type=protocol.Ready)
            if self._fsid is None:
                LOG.info("Pool %s of Ceph %s is reached by Ceph's %s", self.access.pool, ready.fsid, ready.by)
            self._fsid = ready.fsid
        except _Gone as gone:
            worker.end()
            raise self._unreachable("can't be reached from the host", f"the worker ended: {gone}") from None
        except _Late:
            worker.end()
            raise self._unreachable("did not answer in time", "the worker did not connect, and was killed") from None
        except BaseException:
            worker.end()
            raise
        return worker

    def _not_reached(self, failed: protocol.Failed) -> Misconfigured | StorageUnreachable:
        if failed.number not in _WRONG_CONFIGURATION:
            return self._unreachable("can't be reached from the host", failed.text)
        return Misconfigured(
            "The host can't use shared storage as it is configured.",
            details=f"{failed.text}. Look whether {self.access.conf} and the keyring of client.{self.access.user} that it names"
            f" exist and can be read by this service, whether the key is the cluster's, and whether pool {self.access.pool}"
            " exists and the account may use it (mon 'profile rbd', osd 'profile rbd pool=...')",
        )

    def _unreachable(self, why: str, details: str, call: protocol.Call | None = None) -> StorageUnreachable:
        where = f"pool {self.access.pool}, {self.access.conf}, client.{self.access.user}"
        return StorageUnreachable(
            f"Shared storage {why}.", details=": ".join(filter(None, (where, str(call) if call else "", details)))
        )


class _Worker:
    """A worker's process. ``usable``: whether it may get another call. ``fences``: how many of the client's it knows of."""

    def __init__(self, command: Sequence[str], fences: int) -> None:
        self.usable = False
        self.fences = fences
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._left = bytearray()
        try:
            # Killed with the programs that it starts.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, bufsize=0, process_group=0
            )
        except OSError as error:
            self._said.close()
            raise StorageUnreachable("Shared storage can't be reached from the host.", details=str(error)) from error

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, line: bytes, end: float) -> protocol.Answer:
        """Raises `_Gone` and `_Late`."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line)
        except BrokenPipeError:
            raise _Gone(self._last_words()) from None
        return self.read(end)

    def read(self, end: float) -> protocol.Answer:
        """Reads an answer. Raises `_Gone` and `_Late`."""
        assert self._process.stdout is not None
        source = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(source, select.POLLIN)
        more: bytes | bytearray = self._left
        while b"\n" not in more:
            left = end - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                raise _Late
            more = os.read(source, 1 << 16)
            if not more:
                raise _Gone(self._last_words())
            self._left += more
        line, _, self._left = self._left.partition(b"\n")
        try:
            return msgspec.json.decode(line, type=protocol.Answer)
        except msgspec.DecodeError as error:
            raise _Gone(f"it answered {bytes(line[:200])!r} ({error})") from None

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, 9)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_SECONDS)
        for each in (self._process.stdin, self._process.stdout, self._said):
            assert each is not None
            each.close()

    def _last_words(self) -> str:
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _TAIL))
        said = self._said.read().decode(errors="replace").strip()
        return said or f"code {self._process.poll()}"

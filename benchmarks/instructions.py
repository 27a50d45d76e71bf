"""What this process spends on an operation: user instructions where the kernel counts them, and its user CPU.

Instructions repeat within 1 to 3 % however busy the machine is; CPU time does not. The kernel counts them (``perf_event_open``)
for the thread that opens the counter and for every thread started by it, or by those, from then on: open it before the cloud
starts its threads. Child processes are not counted (simulated hosts have none), nor is the work of the kernel. The client that
measures is in the same process, and so in the figures. Inside of callgrind (`benchmarks.callgrind`) that is asked instead.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from benchmarks import callgrind

# Source: perf_event_open(2), linux/perf_event.h
_SYSCALLS = {"x86_64": 298, "aarch64": 241}
_HARDWARE, _INSTRUCTIONS = 0, 1
_ATTRIBUTES_SIZE = 128
# Bits of the attributes. Pinned: counted all the time or not at all, never estimated.
_INHERIT, _PINNED, _NO_KERNEL, _NO_HYPERVISOR, _THREADS_ONLY = 1 << 1, 1 << 2, 1 << 5, 1 << 6, 1 << 35
_CLOSE_ON_EXEC = 8

_REASONS = {
    errno.ENOENT: "this machine has no counter of instructions (most virtual machines have none)",
    errno.EACCES: "/proc/sys/kernel/perf_event_paranoid does not allow it; 2 or less does",
    errno.EPERM: "/proc/sys/kernel/perf_event_paranoid does not allow it; 2 or less does",
    errno.EINVAL: "this kernel can't count the threads of a process without its children (5.13 can)",
    errno.ENOSYS: "this kernel has no perf_event_open, or a sandbox forbids it",
}


@dataclass(frozen=True)
class Spent:
    """``instructions`` None: they can't be counted here. ``parts``: CPU seconds of whom (`benchmarks.shares`), if asked."""

    user_seconds: float = 0.0
    instructions: int | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    def __sub__(self, before: Spent) -> Spent:
        counted = self.instructions is not None and before.instructions is not None
        return Spent(
            self.user_seconds - before.user_seconds,
            (self.instructions or 0) - (before.instructions or 0) if counted else None,
            {part: seconds - before.parts.get(part, 0.0) for part, seconds in self.parts.items()},
        )

    def __truediv__(self, times: int) -> Spent:
        return Spent(
            self.user_seconds / times,
            None if self.instructions is None else self.instructions // times,
            {part: seconds / times for part, seconds in self.parts.items()},
        )


class Meter:
    """Counts from when it is made. ``refusal``: why instructions are not counted; empty if they are."""

    def __init__(self) -> None:
        self._descriptor: int | None = None
        self._callgrind = callgrind.Callgrind() if callgrind.is_on() else None
        self.refusal = ""
        if self._callgrind is not None:
            return
        try:
            self._descriptor = _open()
        except OSError as failure:
            number = failure.errno or 0
            self.refusal = f"perf_event_open: {errno.errorcode.get(number, number)}: " + _REASONS.get(
                number, os.strerror(number)
            )

    def look(self) -> Spent:
        """Everything spent so far."""
        user = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        if self._callgrind is not None:
            return Spent(user, self._callgrind.total())
        if self._descriptor is None:
            return Spent(user)
        data = os.read(self._descriptor, 8)
        if not data:
            raise RuntimeError("instructions were not counted all the time: something else uses the machine's counters")
        return Spent(user, int(struct.unpack("Q", data)[0]))

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _open() -> int:
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    flags = _INHERIT | _PINNED | _NO_KERNEL | _NO_HYPERVISOR | _THREADS_ONLY
    # type, size, config, period, what a sample has, what a read gives, bits
    attributes = struct.pack("IIQQQQQ", _HARDWARE, _ATTRIBUTES_SIZE, _INSTRUCTIONS, 0, 0, 0, flags)
    buffer = ctypes.create_string_buffer(attributes, _ATTRIBUTES_SIZE)
    libc = ctypes.CDLL(None, use_errno=True)
    this_thread, any_cpu, no_group = ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_int(-1)
    descriptor = int(
        libc.syscall(ctypes.c_long(number), buffer, this_thread, any_cpu, no_group, ctypes.c_ulong(_CLOSE_ON_EXEC))
    )
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return descriptor

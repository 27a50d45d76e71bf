"""The clock of an engine. Tests use another one, and never wait."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

# Runs on while the machine is suspended: leases expire meanwhile.
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    def boot(self) -> float:
        """Seconds since the machine was started, those included in which it was suspended."""
        return time.clock_gettime(_BOOT)

    def now(self) -> datetime:
        """Now, in UTC without a zone."""
        return datetime.now(UTC).replace(tzinfo=None)

    def skipped(self) -> timedelta:
        """By how much what sagas transfer is ahead of `now`, if the time that this takes is simulated."""
        return timedelta(0)

    def wait(self, stopping: threading.Event, seconds: float) -> bool:
        """Waits; returns True, at once, if the process is to stop."""
        return stopping.wait(seconds)

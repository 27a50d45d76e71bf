"""The clock of an engine. Tests use another clock, and never wait."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

# Counts also while the machine is suspended, since leases expire meanwhile.
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    def boot(self) -> float:
        """Seconds since the machine was started, including the time in which it was suspended."""
        return time.clock_gettime(_BOOT)

    def now(self) -> datetime:
        """Now, in UTC without a zone."""
        return datetime.now(UTC).replace(tzinfo=None)

    def skipped(self) -> timedelta:
        """How far the time of transfers is ahead of `now`, if transfers take simulated time."""
        return timedelta(0)

    def wait(self, stopping: threading.Event, seconds: float) -> bool:
        """Waits for ``seconds``. Returns True at once when ``stopping`` is set."""
        return stopping.wait(seconds)

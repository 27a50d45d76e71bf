"""The clock of an engine. Tests use another clock, on which no wait takes any time."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta

# This clock also counts while the machine is suspended, because leases expire in that time.
_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    def boot(self) -> float:
        """Seconds since the machine was started, including the time in which it was suspended."""
        return time.clock_gettime(_BOOT)

    def now(self) -> datetime:
        """The present time in UTC, without a zone."""
        return datetime.now(UTC).replace(tzinfo=None)

    def skipped(self) -> timedelta:
        """How far simulated transfers are ahead of `now`: the time that they would have taken, but did not."""
        return timedelta(0)

    def wait(self, stopping: threading.Event, seconds: float) -> bool:
        """Waits for ``seconds``. Returns True at once when ``stopping`` is set."""
        return stopping.wait(seconds)

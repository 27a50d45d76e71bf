"""A plugin of coverage.py that keeps every greenlet which it meets: on CPython 3.11 their end could hang a measured process.

coverage.py notes each greenlet in a dictionary of weak references. After a thread has ended, greenlet deletes the thread's
own ones in a pending call in the main thread, and the dictionary's callback runs there, which is traced. If another thread
ends in this moment, it adds a pending call. CPython looks for pending calls before it traces the callback, may not run one
within another, and looks again, for ever. A greenlet that stays needs no callback.
"""

from __future__ import annotations

from typing import Any

import greenlet

# Two references to each: if one is left when a thread ends, greenlet searches the whole heap for its owner.
_kept: dict[greenlet.greenlet, greenlet.greenlet] = {}


def coverage_init(_registry: Any, _options: Any) -> None:
    """What coverage.py calls before it begins to measure; from then on it asks this ``getcurrent``."""
    find_current = greenlet.getcurrent

    def getcurrent() -> greenlet.greenlet:
        current = find_current()
        _kept[current] = current
        return current

    greenlet.getcurrent = getcurrent

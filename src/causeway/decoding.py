"""Makes types known to msgspec before threads use them; and what it makes whole again.

msgspec learns of a dataclass when it first has to do with it, and keeps that at the class. Two threads that come to the same
class for the first time at once see each other's half of it, and the process dies of it (seen with 0.22). So everything that
may be decoded is shown to it once, before there are threads.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
import threading
from typing import Any

import msgspec

LOG = logging.getLogger(__name__)

_lock = threading.Lock()
_known: set[type] = set()


def learn() -> None:
    """Shows msgspec every dataclass of the modules of ours that are loaded. May be repeated: only new ones take time."""
    with _lock:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] != "causeway":
                continue
            for found in list(vars(module).values()):
                if isinstance(found, type) and dataclasses.is_dataclass(found) and found not in _known:
                    _known.add(found)
                    _learn(found)


def _learn(found: type) -> None:
    try:
        msgspec.json.Decoder(found)
    except (TypeError, NameError) as reason:
        # One that holds threads, databases and the like: nobody decodes it.
        LOG.debug("%s is not for decoding: %s", found.__qualname__, reason)


def all_fields(value: Any) -> dict[str, Any]:
    """A dataclass as `msgspec.to_builtins` gives it, whole: of one that msgspec made itself, that leaves out what was not given.

    (It does not set a field that has a plain default, and then writes the fields that are set: seen with 0.22.)
    """
    found: dict[str, Any] = msgspec.to_builtins(dataclasses.asdict(value))
    return found

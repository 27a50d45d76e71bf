"""Works around two faults of msgspec: it crashes if threads meet a dataclass at the same time, and it omits fields.

msgspec examines a dataclass when it first decodes it, and caches the result on the class. If two threads decode the same class
for the first time at the same moment, one reads what the other has half written, and the process crashes (seen with 0.22). So
`prepare_decoders` makes msgspec examine all dataclasses while there is only one thread. `all_fields` is for the other fault.
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
_prepared: set[type] = set()
# Module -> how many names it had when it was looked through.
_looked_through: dict[str, int] = {}


def prepare_decoders() -> None:
    """Makes msgspec examine every dataclass of Causeway's loaded modules. A repeated call examines only new ones."""
    with _lock:
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] != "causeway" or _looked_through.get(name) == len(vars(module)):
                continue
            _looked_through[name] = len(vars(module))
            for found in list(vars(module).values()):
                if isinstance(found, type) and dataclasses.is_dataclass(found) and found not in _prepared:
                    _prepared.add(found)
                    _prepare(found)


def _prepare(dataclass: type) -> None:
    try:
        msgspec.json.Decoder(dataclass)
    except (TypeError, NameError) as reason:
        # It holds threads, databases and the like. Nobody decodes it.
        LOG.debug("msgspec can't decode %s: %s", dataclass.__qualname__, reason)


def all_fields(value: Any) -> dict[str, Any]:
    """Returns a dataclass as dicts, lists and plain values, as `msgspec.to_builtins` does, but with every field.

    When msgspec decodes a dataclass, it does not set the fields that were missing and have a plain default. When it encodes
    that dataclass, it omits them (seen with 0.22).
    """
    found: dict[str, Any] = msgspec.to_builtins(dataclasses.asdict(value))
    return found

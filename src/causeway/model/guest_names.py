"""Names of guests on their hypervisors, as another host says them."""

from __future__ import annotations

import re

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,127}")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_accepted(name: str, uuid: str) -> bool:
    """Whether a guest may have this name. With the id of another server in it, it could be the name of that one's guest."""
    return _NAME.fullmatch(name) is not None and all(each == uuid for each in _UUID.findall(name.lower()))

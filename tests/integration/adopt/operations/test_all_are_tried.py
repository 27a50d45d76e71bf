"""Which operations on a server are tried on servers that were taken over, and why some are not."""

from __future__ import annotations

import importlib
from pkgutil import iter_modules

from tests.integration.adopt import operations
from tests.integration.adopt.operations.taken import SERVER, all_operations, tried

_SHARES = "a server with shares of Manila is not taken over"
_LIVE = "needs a guest that writes faster than it travels: tests/functional/servers/live"
#: operation -> why it is not tried here
NOT_TRIED = {
    f"GET {SERVER}/shares": _SHARES,
    f"POST {SERVER}/shares": _SHARES,
    f"GET {SERVER}/shares/{{share_id}}": _SHARES,
    f"DELETE {SERVER}/shares/{{share_id}}": _SHARES,
    f"DELETE {SERVER}/migrations/{{migration_id}}": _LIVE,
    "force_complete": _LIVE,
}


def test_every_operation_on_a_server_is_tried_or_has_a_reason() -> None:
    for module in iter_modules(operations.__path__):
        importlib.import_module(f"{operations.__name__}.{module.name}")
    assert tried | set(NOT_TRIED) == all_operations()
    assert tried & set(NOT_TRIED) == set()

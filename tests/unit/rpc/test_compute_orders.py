"""Orders to hosts of an older version: the same is asked of them without a token."""

from __future__ import annotations

from typing import Any

import pytest

from causeway import errors
from causeway.context import RequestContext
from causeway.model import versions
from causeway.model.outcomes import MoveToken
from causeway.rpc.compute_orders import ComputeOrders

TOKEN = MoveToken("move", "migration", 1, "Step")
OLDER = {
    "rebuild_guest": ["rebuild_instance"],
    "remove_guest": ["destroy_instance"],
    "start_guest": ["power_on_instance"],
    "restore_guest": ["power_on_instance"],
    "stop_guest": ["power_off_instance"],
    "store_disk": ["power_off_instance", "snapshot_instance"],
    "upload_disk": ["snapshot_instance"],
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "rebuild_guest": {"block_devices": [], "snapshot_id": None, "power_on": True},
    "remove_guest": {"block_devices": []},
    "start_guest": {"block_devices": []},
    "restore_guest": {"block_devices": []},
    "stop_guest": {},
    "store_disk": {"image_id": "image"},
    "upload_disk": {"image_id": "image"},
}


class Rpc:
    """``knows``: whether the host has the new methods; ``may_send``: whether the upgrade level allows them."""

    def __init__(self, *, knows: bool, may_send: bool) -> None:
        self.asked: list[str] = []
        self._knows, self._may_send = knows, may_send

    def can_send(self, version: str) -> bool:
        assert version == versions.ORDERS_RPC
        return self._may_send

    def call(self, _context: Any, method: str, **given: Any) -> None:
        if method in OLDER:
            assert given["token"] == TOKEN and given["version"] == versions.ORDERS_RPC
            if not self._knows:
                raise errors.NoSuchMethod(method)
        else:
            assert "token" not in given
        self.asked.append(method)


@pytest.mark.parametrize("order", OLDER)
@pytest.mark.parametrize(("knows", "may_send"), [(True, True), (False, True), (False, False)])
def test_an_order(order: str, knows: bool, may_send: bool) -> None:
    computes, rpc = ComputeOrders(), Rpc(knows=knows, may_send=may_send)
    computes._rpc = rpc  # type: ignore[assignment]
    given = {"token": TOKEN, "instance": None, **ARGUMENTS[order]}
    getattr(computes, order)(RequestContext(overwrite=False), "host", **given)
    assert rpc.asked == ([order] if knows and may_send else OLDER[order])

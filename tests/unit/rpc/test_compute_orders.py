"""Orders to hosts of an older version: the same is asked of them without a token."""

from __future__ import annotations

from typing import Any

import pytest

from causeway import errors
from causeway.context import RequestContext
from causeway.model.block_device import BlockDevice
from causeway.model.network import Vif
from causeway.model.outcomes import GuestOutcome, MoveToken, UploadedDisk
from causeway.model.states import PowerState
from causeway.rpc.compute import ComputeClient
from causeway.rpc.declare import calls_of

TOKEN = MoveToken("move", "migration", 1, "Step")
VOLUME = BlockDevice("bdm", "server", "volume", "volume", volume_id="volume", attachment_id="attachment")
ANSWERS: dict[Any, Any] = {
    BlockDevice: VOLUME,
    GuestOutcome: GuestOutcome(PowerState.RUNNING),
    UploadedDisk: UploadedDisk(),
    list[Vif]: [],
}
OLDER = {
    "rebuild_guest": ["rebuild_instance"],
    "remove_guest": ["destroy_instance"],
    "start_guest": ["power_on_instance"],
    "restore_guest": ["power_on_instance"],
    "stop_guest": ["power_off_instance"],
    "store_disk": ["power_off_instance"],
    "upload_disk": ["snapshot_instance"],
    "build_guest": ["destroy_instance", "build_instance"],
    "undo_build": ["destroy_instance"],
    "connect_volume": ["attach_volume"],
    "disconnect_volume": ["detach_volume"],
    "plug_port": ["attach_interface"],
    "unplug_port": ["detach_interface"],
}
ARGUMENTS: dict[str, dict[str, Any]] = {
    "rebuild_guest": {"block_devices": [], "snapshot_id": None, "power_on": True},
    "remove_guest": {"block_devices": []},
    "start_guest": {"block_devices": []},
    "restore_guest": {"block_devices": []},
    "stop_guest": {},
    "store_disk": {"image_id": None},
    "upload_disk": {"image_id": "image", "power_off": False},
    "build_guest": {"block_devices": [], "again": True},
    "undo_build": {"block_devices": []},
    "connect_volume": {"block_device": VOLUME},
    "disconnect_volume": {"block_device": VOLUME},
    "plug_port": {"port_id": "port"},
    "unplug_port": {"vif": None},
}
CAME_FIRST = {"rebuild_guest", "remove_guest", "start_guest", "restore_guest", "stop_guest", "store_disk"}


def since(order: str) -> str:
    return "1.3" if order in CAME_FIRST else "1.4"


class Rpc:
    """``knows``: whether the host has the new methods; ``may_send``: whether the upgrade level allows them."""

    def __init__(self, *, knows: bool, may_send: bool) -> None:
        self.asked: list[str] = []
        self._knows, self._may_send = knows, may_send

    def can_send(self, version: str) -> bool:
        assert version in ("1.3", "1.4")
        return self._may_send

    def call(self, _context: Any, method: str, **given: Any) -> Any:
        if method in OLDER:
            assert given["token"] == TOKEN and given["version"] == since(method)
            if not self._knows:
                raise errors.NoSuchMethod(method)
        else:
            assert "token" not in given
        self.asked.append(method)
        return ANSWERS.get(calls_of(ComputeClient)[method].result)


def asking(rpc: Rpc) -> ComputeClient:
    computes = ComputeClient.__new__(ComputeClient)
    computes._rpc = rpc  # type: ignore[assignment]
    return computes


class Capped(Rpc):
    """``level``: the newest version that may be sent."""

    def __init__(self, level: str) -> None:
        super().__init__(knows=True, may_send=True)
        self._level = level

    def can_send(self, version: str) -> bool:
        return version <= self._level


@pytest.mark.parametrize("order", OLDER)
@pytest.mark.parametrize(("knows", "may_send"), [(True, True), (False, True), (False, False)])
def test_an_order_to_an_older_host_has_no_token(order: str, knows: bool, may_send: bool) -> None:
    rpc = Rpc(knows=knows, may_send=may_send)
    computes = asking(rpc)
    given = {"token": TOKEN, "instance": None, **ARGUMENTS[order]}
    getattr(computes, order)(RequestContext(overwrite=False), "host", **given)
    assert rpc.asked == ([order] if knows and may_send else OLDER[order])


def test_a_host_that_was_not_asked_before_has_nothing_to_destroy() -> None:
    rpc = Rpc(knows=False, may_send=True)
    computes = asking(rpc)
    given: Any = {"token": TOKEN, "instance": None, "block_devices": [], "again": False}
    computes.build_guest(RequestContext(overwrite=False), "host", **given)
    assert rpc.asked == ["build_instance"]


@pytest.mark.parametrize(
    ("level", "asked"),
    [
        ("1.2", ["power_off_instance", "snapshot_instance"]),
        ("1.3", ["store_disk"]),
        ("1.4", ["upload_disk"]),
    ],
)
def test_a_disk_is_stored_by_the_newest_order_that_the_host_knows(level: str, asked: list[str]) -> None:
    rpc = Capped(level)
    computes = asking(rpc)
    given: Any = {"token": TOKEN, "instance": None, "image_id": "image", "power_off": True}
    computes.upload_disk(RequestContext(overwrite=False), "host", **given)
    assert rpc.asked == asked


@pytest.mark.parametrize(("level", "order"), [("1.2", "destroy_instance"), ("1.3", "remove_guest")])
def test_an_upgrade_level_allows_the_orders_that_its_hosts_know(level: str, order: str) -> None:
    rpc = Capped(level)
    computes = asking(rpc)
    given: Any = {"token": TOKEN, "instance": None, "block_devices": []}
    computes.remove_guest(RequestContext(overwrite=False), "host", **given)
    computes.undo_build(RequestContext(overwrite=False), "host", **given)
    assert rpc.asked == [order, "destroy_instance"]

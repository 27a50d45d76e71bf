"""Libraries without timeouts get one: a volume whose server is dead keeps nobody waiting for good."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("libvirt")

from causeway.errors import GuestFailed
from causeway.model.block_device import BlockDevice
from causeway.virt.libvirt.bounded import within
from causeway.virt.libvirt.storage import volumes
from tests.unit.virt.ceph_host import no_ceph, no_secrets, no_shares


def test_what_ends_in_time_is_returned_or_raised() -> None:
    assert within(30, "count", lambda: 42) == 42
    with pytest.raises(ZeroDivisionError):
        within(30, "divide", lambda: 1 // 0)


def test_what_does_not_end_is_left_to_itself() -> None:
    ends = threading.Event()
    with pytest.raises(GuestFailed, match="The host did not wait within 0 s"):
        within(0.05, "wait", ends.wait)
    ends.set()


@pytest.mark.parametrize("what", ["connect", "disconnect"])
def test_a_volume_whose_server_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    ends = threading.Event()

    class Hangs:
        def connect_volume(self, *_given: Any) -> Any:
            ends.wait(30)

        def disconnect_volume(self, *_given: Any, **_more: Any) -> Any:
            ends.wait(30)

    monkeypatch.setattr(volumes, "_CONNECT_SECONDS", 0.05)
    monkeypatch.setattr(volumes.Volumes, "_connector", lambda *_given: Hangs())
    volume = BlockDevice(
        uuid="1",
        instance_uuid="server",
        source_type="volume",
        destination_type="volume",
        device_name="/dev/vdb",
        volume_id="volume-1",
        connection_info={"driver_volume_type": "nfs", "data": {}},
    )
    found = volumes.Volumes("host1", no_shares(tmp_path), tmp_path, lambda _volume: set(), no_ceph(), no_secrets())
    with pytest.raises(GuestFailed, match=f"The host did not {what} volume volume-1 within"):
        getattr(found, what)("server", volume)
    ends.set()

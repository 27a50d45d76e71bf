"""Which orders count as work with disks, and for how long."""

from __future__ import annotations

import inspect

import pytest

from causeway.compute.host.disk_work import ORDERS, DiskWork
from causeway.rpc.compute import ComputeClient


def test_an_order_counts_until_it_ends_or_fails() -> None:
    work = DiskWork()
    with work.during("build_guest"), work.during("receive_round"):
        assert work.count == 2
    with pytest.raises(OSError, match="full"), work.during("store_disk"):
        raise OSError("the disk is full")
    assert work.count == 0


def test_an_order_that_moves_no_disk_does_not_count() -> None:
    work = DiskWork()
    with work.during("plug_port"):
        assert work.count == 0


def test_all_orders_exist() -> None:
    assert {name for name, _method in inspect.getmembers(ComputeClient)} >= ORDERS

"""How large a host says that its pool is: Ceph may not answer, and the host reports all the same."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.errors import StorageUnreachable
from causeway.virt.libvirt.storage import rbd_pool
from causeway.virt.libvirt.storage.rbd_pool import PoolSize


class Store:
    """A pool that answers, or hangs until it may continue."""

    id = "rbd:fsid/pool"

    def __init__(self) -> None:
        self.total = 100 << 30
        self.answers = threading.Event()
        self.answers.set()
        self.fails = False
        self.fails_first = 0
        self.client: Any = None
        self.asked = threading.Semaphore(0)

    def used_and_total(self) -> tuple[int, int]:
        self.asked.release()
        self.fails_first -= 1
        assert self.answers.wait(60)
        if self.fails or self.fails_first >= 0:
            raise StorageUnreachable("Shared storage did not answer.")
        return 0, self.total


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(rbd_pool, "_ASK_EVERY", -1.0)
    return Store()


def asked_again(size: Any) -> None:
    """Returns when nobody asks any more."""
    with size._asking:
        pass


def test_a_host_that_has_never_reached_its_pool_does_not_report(store: Store) -> None:
    store.fails = True
    with pytest.raises(StorageUnreachable):
        PoolSize(store, patience=0.0).gib()  # type: ignore[arg-type]


def test_a_pool_that_was_just_made_is_waited_for(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rbd_pool, "_LOOK_EVERY", 0.01)
    store.client = SimpleNamespace(stopping=threading.Event())
    store.fails_first = 2
    assert PoolSize(store).gib() == 100  # type: ignore[arg-type]


def test_a_report_does_not_wait_for_storage_that_hangs(store: Store) -> None:
    size = PoolSize(store)  # type: ignore[arg-type]
    assert size.gib() == 100
    assert store.asked.acquire(timeout=60)
    store.answers.clear()
    store.total = 200 << 30
    assert size.gib() == 100
    assert store.asked.acquire(timeout=60)
    # One asks at a time.
    assert size.gib() == 100
    assert not store.asked.acquire(blocking=False)
    store.answers.set()
    asked_again(size)
    assert size.gib() == 200


def test_storage_that_fails_later_keeps_the_size_that_it_had(store: Store) -> None:
    size = PoolSize(store)  # type: ignore[arg-type]
    assert size.gib() == 100
    store.fails = True
    assert size.gib() == 100
    asked_again(size)
    assert size.gib() == 100
    asked_again(size)

"""A real Ceph as shared storage for tests: a store on its pool of disks, and guests with disks of it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from causeway.virt.libvirt.storage import qemu_img
from causeway.virt.libvirt.storage.rbd.client import Limits, RbdClient
from causeway.virt.libvirt.storage.rbd.protocol import Access, Names
from causeway.virt.libvirt.storage.rbd.store import RbdStore
from tests.integration.real_services.ceph import Ceph
from tests.process_trees import stop

POOL, ACCOUNT = "vms", "compute"
_PATIENCE = 120.0
_MIB = 2**20


class RbdSite:
    """``store``: of one host, whose `remove` waits for two seconds."""

    def __init__(self, ceph: Ceph, *, programs: bool = False) -> None:
        self.ceph = ceph
        self.programs = programs
        self._stores: list[RbdStore] = []
        self.store = self.host()

    def host(
        self,
        *,
        user: str = ACCOUNT,
        conf: Path | None = None,
        pool: str = POOL,
        connect_timeout: int = 20,
        request_timeout: int = 30,
        busy_timeout: float = 2.0,
    ) -> RbdStore:
        """The store as another host sees it."""
        path = self.ceph.configuration(user) if conf is None else conf
        access = Access(str(path), user, pool, connect_timeout, request_timeout, self.programs)
        store = RbdStore(RbdClient(access, Limits.of(access, 300)), busy_timeout=busy_timeout)
        self._stores.append(store)
        return store

    def close(self) -> None:
        for store in self._stores:
            store.client.close()

    def make(self, name: str, content: bytes) -> None:
        self.store.create(name, len(content))
        self.write(name, content)

    def write(self, name: str, content: bytes) -> None:
        with self.guest(name) as guest:
            guest.grow(len(content))
            assert guest.write(content)

    def content(self, name: str, pool: str = POOL) -> bytes:
        return subprocess.run(
            ["rbd", "-c", self.ceph.configuration("admin"), "export", "--no-progress", f"{pool}/{name}", "-"],
            capture_output=True,
            timeout=_PATIENCE,
            check=True,
        ).stdout

    @contextmanager
    def guest(self, name: str, pool: str = POOL) -> Iterator[RbdGuest]:
        guest = RbdGuest(self.ceph, name, pool)
        try:
            yield guest
        finally:
            guest.end()

    def run(self, *words: str) -> str:
        """`rbd`, or another program, of the cluster's administrator."""
        return self.ceph.run(*words)

    def trash(self) -> list[str]:
        return [each["name"] for each in json.loads(self.run("rbd", "trash", "ls", POOL, "--format", "json"))]

    def blocklist(self) -> list[str]:
        # It says another list after the first.
        said, _end = json.JSONDecoder().raw_decode(
            self.run("ceph", "osd", "blocklist", "ls", "--format", "json").strip()
        )
        return [each["addr"] for each in said]


class RbdGuest:
    """See `rbd_guest`. Its first write makes it the image's owner in Ceph's eyes."""

    def __init__(self, ceph: Ceph, name: str, pool: str) -> None:
        words = (str(ceph.configuration(ACCOUNT)), ACCOUNT, pool, name)
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", f"{__package__}.rbd_guest", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._said() == "open"

    def write(self, content: bytes, offset: int = 0) -> bool:
        """Whether it was written. Else Ceph must have locked it out."""
        said = self._asked(f"write {offset} {content.hex()}")
        assert said in ("done", "108"), said
        return said == "done"

    def discard(self, offset: int, size: int) -> None:
        assert self._asked(f"discard {offset} {size}") == "done"

    def grow(self, size: int) -> None:
        assert self._asked(f"grow {size}") == "done"

    def freeze(self) -> None:
        stop(self.process.pid)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(_PATIENCE)

    def end(self) -> None:
        """As a guest that is shut down, unless it was killed."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.thaw()
        self.process.stdin.close()
        self.process.wait(_PATIENCE)
        self.process.stdout.close()

    def _asked(self, line: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self._said()

    def _said(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def clean_site(ceph: Ceph, *, programs: bool = False) -> Iterator[RbdSite]:
    """Without disks before and after."""
    site = RbdSite(ceph, programs=programs)
    _clean(site)
    yield site
    _clean(site)
    site.close()


def _clean(site: RbdSite) -> None:
    store = site.host(busy_timeout=60)
    names: list[str] = store.client.ask(Names(), list[str])
    for name in names:
        store.remove(name)
    # Clones come before what they stand on.
    while site.trash():
        site.run("rbd", "trash", "purge", "--no-progress", POOL)


def image_file(folder: Path, disk_format: str) -> tuple[Path, bytes]:
    """A file that is an image, and what is in the image: not a whole number of sectors."""
    raw = folder / "raw"
    content = b"an image" * 512 + bytes(3 * _MIB) + b"its end"
    raw.write_bytes(content)
    content += bytes(-len(content) % 512)
    if disk_format == "raw":
        return raw, content
    file = folder / "qcow2"
    qemu_img.from_raw(raw, file)
    return file, content


def await_that(good: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not good():
        assert time.monotonic() < end
        threading.Event().wait(0.5)

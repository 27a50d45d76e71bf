"""Uploads the root disk of a guest that is being shut down as an image. Most of it is uploaded while the guest still runs.

One upload has everything: the disk as it is at one instant, then, when the guest is off, what changed since (`virt.qcow2`).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor, wait

from causeway import errors
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.faults import injector
from causeway.model.instance import Instance
from causeway.virt import qcow2
from causeway.virt.driver import ROOT_DISK, Progress
from causeway.virt.warm import DiskReader

_ROUND = 1
# Image services and proxies abandon a client that sends nothing, and a guest may need long to shut down. So this many bytes are
# held back, and sent in small pieces meanwhile.
_KEPT_BYTES, _BIT = 4 << 20, 32 << 10
_SECONDS_BETWEEN_BITS = 1.0
# Seconds for which an image service may need to notice that an upload broke off, and seconds between two checks.
_NOTICED_SECONDS, _LOOK_EVERY = 20.0, 0.2


def upload_and_shut_down(
    host: Host, context: RequestContext, instance: Instance, image_id: str, progress: Progress
) -> int:
    """Shuts the guest down and uploads the root disk as it is then. Returns the size of the image in bytes.

    Raises WarmCopyImpossible or GuestFailed if the disk can't be uploaded while the guest runs. The guest may be off by then, and
    the image can be made in another way. The caller must hold the guest's lock.
    """
    stream = _Stream(host, instance, progress)
    opened: list[Generator[bytes, None, None]] = []

    def close_all() -> None:
        while opened:
            opened.pop().close()

    def parts() -> Iterator[bytes]:
        # This may be a second attempt, if the user's token was not accepted.
        close_all()
        opened.append(stream.parts())
        return opened[-1]

    try:
        host.images.stream(context, image_id, parts)
        if not stream.is_complete:
            # The service answered without an error before it had everything.
            raise _cut_short(image_id)
    except (errors.WarmCopyImpossible, errors.GuestFailed):
        _await_broken_off(host, context, image_id)
        raise
    finally:
        close_all()
        injector.reach("disk.stream.sent")
        host.driver.end_rounds(instance.uuid)
    return stream.sent


def _await_broken_off(host: Host, context: RequestContext, image_id: str) -> None:
    """Waits until the image takes data again.

    Raises DiskTransferBroken if it does not, DiskTransferFailed if it accepted a part.
    """
    end = time.monotonic() + _NOTICED_SECONDS
    while (status := host.images.show_of_server(context, image_id).status) == "saving":
        if time.monotonic() >= end or host.stopping.wait(_LOOK_EVERY):
            raise errors.DiskTransferBroken(
                "The image service does not end an upload that was broken off.", details=f"image {image_id}"
            )
    if status == "active":
        raise _cut_short(image_id)


def _cut_short(image_id: str) -> errors.DiskTransferFailed:
    return errors.DiskTransferFailed(
        "The image service accepted a part of the server's disk as the whole disk. Try again.",
        details=f"image {image_id}",
    )


class _Stream:
    """The uploaded data. ``sent``: bytes so far; ``is_complete``: everything was sent."""

    def __init__(self, host: Host, instance: Instance, progress: Progress) -> None:
        self._host, self._instance, self._progress = host, instance, progress
        self.sent, self.is_complete = 0, False

    def parts(self) -> Generator[bytes, None, None]:
        driver, instance = self._host.driver, self._instance
        self.sent, self.is_complete = 0, False
        (disk,) = driver.begin_round(instance, [ROOT_DISK], _ROUND, since=None, flatten=True).disks
        kept: deque[bytes] = deque()
        with driver.open_round(instance, ROOT_DISK, _ROUND) as reader:
            extents = reader.extents()
            image = qcow2.Image(disk.size, extents)
            yield from self._counted([image.header()], image)
            for data in _read(reader, extents, disk.size):
                kept.extend(data[at : at + _BIT] for at in range(0, len(data), _BIT))
                injector.reach("disk.stream.in")
                while len(kept) > _KEPT_BYTES // _BIT:
                    yield from self._counted([kept.popleft()], image)
        driver.end_round(instance, _ROUND)
        # Raises if the upload is no longer wanted.
        self._progress(self.sent, image.known_bytes)
        yield from self._counted(self._while_it_shuts_down(kept), image)
        injector.reach("disk.stream.off")
        with driver.open_changes(instance, ROOT_DISK, _ROUND) as reader_of_changes:
            if reader_of_changes is None:
                raise errors.WarmCopyImpossible(
                    "It is unknown what changed on the server's disk while it was uploaded.", details=instance.uuid
                )
            changed = reader_of_changes.extents()
            yield from self._counted(image.tables(changed), image)
            yield from self._counted(_read(reader_of_changes, changed, disk.size), image)
        self.is_complete = True

    def _while_it_shuts_down(self, kept: deque[bytes]) -> Iterator[bytes]:
        host, instance = self._host, self._instance
        with ThreadPoolExecutor(1, thread_name_prefix="shut-down") as pool:
            off = pool.submit(host.driver.power_off, instance.uuid, host.shutdown_timeout(instance))
            while kept and not wait([off], _SECONDS_BETWEEN_BITS).done:
                yield kept.popleft()
            off.result()
        yield from kept

    def _counted(self, parts: Iterator[bytes] | list[bytes], image: qcow2.Image) -> Iterator[bytes]:
        for part in parts:
            yield part
            self.sent += len(part)
            self._progress(self.sent, image.known_bytes)


def _read(reader: DiskReader, extents: qcow2.Extents, size: int) -> Iterator[bytes]:
    """Yields the whole clusters that the extents touch, a few at a time."""
    for offset, length in qcow2.pieces_of(extents):
        yield reader.read(offset, min(length, size - offset)).ljust(length, b"\0")

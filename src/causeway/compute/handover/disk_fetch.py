"""Fetches disks that another host offers (`disk_server`), and compares their digests with those of the offer.

After a broken connection, or a restart of the source, only the rest is fetched. If the source sends nothing for
``disk_transfer_patience`` seconds, the transfer fails.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

import requests

from causeway import durable, errors
from causeway.compute.handover.peers import Peer
from causeway.compute.host import Host
from causeway.faults import injector
from causeway.model.outcomes import DiskOffer, OfferedDisk
from causeway.model.warm import CHANGES

LOG = logging.getLogger(__name__)

# A chunk of zeros becomes a hole in the file.
CHUNK_BYTES = 256 << 10
ZEROS = bytes(CHUNK_BYTES)
# Seconds to connect, and between two pieces.
TIMEOUT = (10.0, 30.0)
PAUSE = 0.5


class Digest(Protocol):
    """A digest of hashlib."""

    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


@dataclass
class _Partial:
    file: BinaryIO
    digest: Digest
    done: int = 0

    def add(self, chunk: bytes) -> None:
        self.digest.update(chunk)
        if chunk == (ZEROS if len(chunk) == CHUNK_BYTES else ZEROS[: len(chunk)]):
            self.file.seek(len(chunk), os.SEEK_CUR)
        else:
            self.file.write(chunk)
        self.done += len(chunk)


def fetch(
    host: Host,
    offer: DiskOffer,
    disk: OfferedDisk,
    path: Path,
    progress: Callable[[int], None],
    patience: float | None = None,
) -> None:
    """Fetches an offered disk into the file ``path``. ``progress`` gets the number of bytes that have arrived.

    Raises DiskTransferFailed if the source does not offer the disk (any more), DiskTransferBroken if the source sends nothing or
    something else, HostNotTrusted if one host refuses the other's certificate. An error of ``progress`` ends the transfer, and is
    raised.
    """
    injector.reach("disk.fetch.before")
    if injector.fails("disk.fetch.connect"):
        raise errors.DiskTransferBroken(
            "A disk of the server could not be fetched: a cut connection was injected.", details=f"{disk.name}"
        )
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("wb") as file, Peer(host, offer.token) as peer:
            got = _Partial(file, hashlib.sha256())
            wait = host.conf.disk_transfer_patience if patience is None else patience
            _receive_all(host, peer, f"{offer.url}/{disk.name}", disk, got, progress, wait)
            # Seeking over a hole at the end does not lengthen the file.
            file.truncate(got.done)
        if got.digest.hexdigest() != disk.sha256:
            raise errors.DiskTransferBroken(
                "A disk of the server was damaged on its way. Try again.",
                details=f"{disk.name}: sha256 {got.digest.hexdigest()} arrived, {disk.sha256} was offered",
            )
        if disk.disk_format == CHANGES:
            # They are added to a copy, which is synced; if a power cut takes them, they are fetched again.
            partial.replace(path)
        else:
            durable.settle(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    injector.reach("disk.fetch.after")


def release(host: Host, offer: DiskOffer) -> None:
    """Notifies the source that its disks have arrived, so that it can free their space early. Does not raise."""
    try:
        injector.reach("disk.release.before")
        with Peer(host, offer.token) as peer:
            peer.ask("DELETE", offer.url, timeout=TIMEOUT).close()
    except (requests.RequestException, errors.OperationFailed) as failure:
        LOG.info("The source could not be notified that its disks have arrived: %s", type(failure).__name__)


def _receive_all(
    host: Host,
    peer: Peer,
    url: str,
    disk: OfferedDisk,
    got: _Partial,
    progress: Callable[[int], None],
    patience: float,
) -> None:
    heard, why = time.monotonic(), ""
    while got.done < disk.size:
        before = got.done
        try:
            _receive(peer, url, disk, got, progress)
            why = "the source ended early"
        except requests.RequestException as failure:
            why = f"{type(failure).__name__}: {failure}"
        if got.done > before:
            heard = time.monotonic()
        if got.done >= disk.size:
            return
        if time.monotonic() - heard >= patience or host.stopping.wait(PAUSE):
            raise errors.DiskTransferBroken(
                f"A disk of the server could not be fetched: {got.done} of {disk.size} bytes arrived. Try again later.",
                details=f"{disk.name} from {url}: {why}",
            )


def _receive(peer: Peer, url: str, disk: OfferedDisk, got: _Partial, progress: Callable[[int], None]) -> None:
    asked = {"Range": f"bytes={got.done}-"} if got.done else {}
    # A range counts bytes of the file, so nothing must compress the body.
    headers = {**asked, "Accept-Encoding": "identity"}
    with peer.ask("GET", url, headers=headers, timeout=TIMEOUT) as answer:
        if answer.status_code in (401, 404, 416):
            raise errors.DiskTransferFailed(
                "The source does not offer the server's disk any more.",
                details=f"{disk.name} from {url}: status {answer.status_code}",
            )
        answer.raise_for_status()
        if answer.status_code != (206 if asked else 200):
            raise errors.DiskTransferBroken(
                "The source answered with something else than the rest of the disk.",
                details=f"{disk.name} from {url}: status {answer.status_code}",
            )
        for chunk in answer.iter_content(CHUNK_BYTES):
            got.add(chunk)
            if got.done > disk.size:
                raise errors.DiskTransferBroken(
                    "The source sent more than it offered.", details=f"{disk.name} from {url}: over {disk.size} bytes"
                )
            progress(got.done)

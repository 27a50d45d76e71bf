"""Fetches parts of a disk straight from the host where its guest runs (`disk_server` serves them)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any

import requests

from causeway import errors
from causeway.compute.disks import changes
from causeway.compute.handover.peers import Peer
from causeway.compute.host import Host
from causeway.model.warm import CopiedDisk, CopyRound

# Seconds to connect, which is quick with a host that can be reached; and seconds between two pieces.
CONNECT, READ = 3.0, 30.0
PAUSE = 0.5
# HTTP must not compress the body, since the stream itself can have compressed pieces.
_HEADERS = {"Accept-Encoding": "identity", "X-Accept-Codings": ", ".join(changes.CODINGS)}


@contextmanager
def open_part(host: Host, peer: Peer, copied: CopyRound, disk: CopiedDisk, part: int) -> Iterator[changes.Source]:
    """Opens the stream of a part.

    Raises HostUnreachable, HostNotTrusted, and DiskTransferBroken if the stream breaks or the source no longer has the round.
    """
    url = f"{copied.url}/{copied.number}/{disk.name}/{part}"
    answer = _ask(host, peer, url)
    try:
        if answer.status_code in (401, 404):
            # Another attempt can succeed, with the source's next round.
            raise errors.DiskTransferBroken(
                "The source does not have that round of the server's disk any more.",
                details=f"{url}: status {answer.status_code}",
            )
        if answer.status_code != 200:
            raise errors.DiskTransferBroken("The source failed.", details=f"{url}: status {answer.status_code}")
        yield _Body(answer, url)
    finally:
        answer.close()


def _ask(host: Host, peer: Peer, url: str) -> requests.Response:
    """Sends a request, again and again for ``CONNECT`` seconds, because the source may be restarting.

    Raises HostUnreachable if it does not answer in this time, DiskTransferBroken if it answers but sends nothing.
    """
    end = time.monotonic() + CONNECT
    while True:
        try:
            return peer.ask("GET", url, headers=_HEADERS, timeout=(CONNECT, READ))
        except requests.ReadTimeout as failure:
            raise errors.DiskTransferBroken("The source does not send the server's disk.", details=url) from failure
        except requests.ConnectionError as failure:
            if time.monotonic() >= end or host.stopping.wait(PAUSE):
                raise errors.HostUnreachable(
                    "The server's host can't be reached from the chosen one.",
                    details=f"{url}: {type(failure).__name__}",
                ) from failure


class _Body:
    """An answer's body as a file."""

    def __init__(self, answer: requests.Response, url: str) -> None:
        self._answer, self._url = answer, url

    def readinto(self, buffer: memoryview, /) -> int:
        # Below urllib3, which would copy each piece twice, each time into new memory.
        below: Any = self._answer.raw._fp
        try:
            found: int = below.readinto(buffer)
        except (HTTPException, OSError) as failure:
            raise errors.DiskTransferBroken(
                "The transfer of a disk broke off.", details=f"{self._url}: {type(failure).__name__}"
            ) from failure
        return found

"""Where a host may be asked for what it offers: below ``/disks/`` and the id of a move, and nowhere else.

The URL of an offer comes from another host. If it could lead anywhere, that host could have this one read and delete at
whatever this one reaches. The conductor has compared the address with the recorded one of that host
(`causeway.moves.steps.direct`).
"""

from __future__ import annotations

import re

from oslo_utils import netutils

from causeway.errors import DiskTransferFailed

_HOST = r"[0-9A-Za-z.-]+|\[[0-9A-Fa-f:.]+\]"
# disk_server: an offer, one of its disks, or a part of a disk in a round
_PATH = r"/disks/[0-9a-f-]{36}(/[a-z][a-z0-9.]{0,40}|/rounds/\d{1,9}/[a-z][a-z0-9.]{0,40}/\d{1,9})?"
_URL = re.compile(rf"https?://({_HOST}):(?P<port>\d{{1,5}}){_PATH}")


def checked(url: str) -> str:
    """Returns the URL. Raises DiskTransferFailed if no host offers anything there."""
    found = _URL.fullmatch(url)
    if found is None or not netutils.is_valid_port(found["port"]):
        raise DiskTransferFailed(
            "The source named a place where no host offers disks.", details=f"{url[:200]!r} is no URL of an offer"
        )
    return url

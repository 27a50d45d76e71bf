"""How far a host is on its way from Nova to Causeway, and what stands in its way."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


@dataclass
class Finding:
    """A difference between what is found on a host and the records.

    ``kind``: stable, such as ``guest.missing``. ``subject``: a server's uuid, or the host. ``remedy``: what to do about it.
    ``blocks``: the host can't be taken as long as it is there.
    """

    kind: str
    subject: str
    what: str
    remedy: str = ""
    blocks: bool = True


class HostState(StrEnum):
    IMPORTED = "imported"
    LOOKED = "looked"
    TAKEN = "taken"
    RELEASED = "released"


@dataclass
class AdoptedHost:
    """``findings``: of the last look."""

    host: str
    cell_uuid: str
    state: HostState = HostState.IMPORTED
    findings: list[Finding] = field(default_factory=list)
    updated_at: datetime | None = None

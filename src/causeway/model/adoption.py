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
    """``taking``: it was said that it be taken, and not yet noted that it was: it may be Causeway's, or nobody's.

    ``taken``: until it is noted that it was handed back.
    """

    IMPORTED = "imported"
    LOOKED = "looked"
    TAKING = "taking"
    TAKEN = "taken"
    RELEASED = "released"


#: of hosts that are, or may be, Causeway's: nothing is imported over what Causeway made of their servers
OWNED = frozenset({HostState.TAKING, HostState.TAKEN})


@dataclass
class AdoptedHost:
    """``findings``: of the last look."""

    host: str
    cell_uuid: str
    state: HostState = HostState.IMPORTED
    findings: list[Finding] = field(default_factory=list)
    updated_at: datetime | None = None

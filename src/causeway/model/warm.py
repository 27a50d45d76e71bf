"""The rounds in which the disks of a running guest are copied before it moves."""

from __future__ import annotations

from dataclasses import dataclass, field

# The disk format (instead of qcow2) of disks whose content is a stream of changes (`causeway.compute.disks.changes`).
CHANGES = "changes"


@dataclass
class CopiedDisk:
    """A disk in a round. ``size``: bytes that the guest sees. Whole blocks of ``block`` bytes travel."""

    name: str
    size: int
    block: int
    #: the most bytes that travel, or the real size that they stand for
    to_send: int
    #: the number of parts in which it travels; each can be sent again
    parts: int
    #: the content of this image does not travel
    base_image_id: str | None = None
    #: bytes of a real disk for each byte that travels, since disks of simulated guests are small
    scale: float = 1.0


@dataclass
class CopyRound:
    """The disks of a guest as they were at one instant: whole, or their changes since another round.

    ``secret`` gives access to them, and is never shown.
    """

    number: int
    #: the earlier round; None if this one has everything that differs from the base images
    since: int | None
    url: str
    secret: str = field(repr=False)
    disks: list[CopiedDisk] = field(default_factory=list)
    #: those that the source may use: compressions, and digests
    codings: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """The most bytes that travel."""
        return sum(disk.to_send for disk in self.disks)


@dataclass
class RoundReceived:
    """A target's report of a round. ``sent``: bytes that travelled; ``codings``: those that it can read."""

    sent: int
    codings: list[str] = field(default_factory=list)


@dataclass
class WarmCopy:
    """The progress of copying disks while the guest runs, in the memory of the move."""

    #: the last round that the target has whole; None before the first
    received: int | None = None
    rounds: int = 0
    #: bytes that travelled while the guest ran
    sent: int = 0
    #: goes through the image service, since the hosts do not reach one another
    through_images: bool = False
    #: the last round came directly, and so can the last changes
    is_direct: bool = False
    #: those that the target can read, as far as known
    codings: list[str] = field(default_factory=list)
    #: images of parts that may be there
    image_ids: list[str] = field(default_factory=list)
    #: why the rest is not copied while the guest runs
    ended: str | None = None
    #: bytes a second: how fast the last round was copied, and how fast the guest changed its disks before that
    copy_rate: float | None = None
    change_rate: float | None = None
    #: bytes a second that the guest may write; None: it is not limited
    write_limit: int | None = None

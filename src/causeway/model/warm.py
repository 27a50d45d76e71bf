"""The rounds in which the disks of a running guest are copied before it moves."""

from __future__ import annotations

from dataclasses import dataclass, field

# What disks are called whose content is a stream of changes (`causeway.compute.disks.changes`), where others say qcow2.
CHANGES = "changes"


@dataclass
class CopiedDisk:
    """A disk in a round. ``size``: bytes that the guest sees of it; what travels is whole blocks of ``block`` bytes."""

    name: str
    size: int
    block: int
    #: bytes that travel at most, or what they stand for
    to_send: int
    #: it goes in that many parts, each of which can be sent again
    parts: int
    #: what this image has does not travel
    base_image_id: str | None = None
    #: bytes of a real disk that each byte which travels stands for: those of simulated guests are small
    scale: float = 1.0


@dataclass
class CopyRound:
    """The disks of a guest as they were at one instant: all of them, or what changed since another round.

    Whoever has ``secret`` may read them: it is never shown.
    """

    number: int
    #: None: it has all that differs from the base images
    since: int | None
    url: str
    secret: str = field(repr=False)
    disks: list[CopiedDisk] = field(default_factory=list)
    #: how the source can compress; none: it is of an older version, or may not
    codings: list[str] = field(default_factory=list)
    #: the source can offer the last changes to a host of another cell; False: it is of an older version
    can_offer: bool = False

    @property
    def size(self) -> int:
        """Bytes that travel at most."""
        return sum(disk.to_send for disk in self.disks)


@dataclass
class RoundReceived:
    """What a target reports of a round. ``sent``: bytes that travelled; ``codings``: what it can read compressed.

    ``can_fetch``: it can fetch the last changes, too, from a host of another cell; False: it is of an older version.
    """

    sent: int
    codings: list[str] = field(default_factory=list)
    can_fetch: bool = False


@dataclass
class WarmCopy:
    """How far the copying beside the guest has come, in the memory of its move."""

    #: the last round that the target has whole; None: none yet
    received: int | None = None
    rounds: int = 0
    #: bytes that travelled while the guest ran
    sent: int = 0
    #: hosts do not reach one another: through the image service
    through_images: bool = False
    #: the last round came directly, and so can the last changes
    is_direct: bool = False
    #: what the target can read compressed, as far as it has said
    codings: list[str] = field(default_factory=list)
    #: images of parts that may be there
    image_ids: list[str] = field(default_factory=list)
    #: why the rest is not copied beside the guest
    ended: str | None = None

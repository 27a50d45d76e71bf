"""What `causeway audit` finds: see `causeway.audit`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from causeway.model.numa import InstanceNUMATopology
from causeway.model.states import PowerState


class Severity(StrEnum):
    CRITICAL = "critical"  # a server or its data may be lost or damaged
    ERROR = "error"  # something a user or an operator will run into
    WARNING = "warning"  # something is orphaned; it does no harm


@dataclass
class Fix:
    """How a disagreement can be fixed safely: a name of `causeway.audit.fixes.ACTIONS` and its arguments."""

    action: str
    arguments: dict[str, Any] = field(default_factory=dict)


@dataclass
class Disagreement:
    """A disagreement between two places about a ``resource`` (a port, a host, a consumer, ...)."""

    kind: str
    severity: Severity
    resource: str
    server: str | None
    message: str
    # None: there is no safe fix, and ``left`` says why
    fix: Fix | None = None
    left: str = ""

    @property
    def key(self) -> tuple[str, str, str | None]:
        """Identifies the disagreement when it is found again."""
        return (self.kind, self.resource, self.server)


@dataclass
class Report:
    """What an audit found. ``disagreements``: those left at its end; ``fixed``: those that it fixed."""

    started_at: datetime
    seconds: float = 0.0
    disagreements: list[Disagreement] = field(default_factory=list)
    fixed: list[Disagreement] = field(default_factory=list)
    # What could not be asked, each with the reason.
    unreached: list[str] = field(default_factory=list)
    # Servers that changed during each look of the audit, so that nothing is known of them.
    in_motion: list[str] = field(default_factory=list)
    # How many servers, hosts, ports, ... were checked.
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_clean(self) -> bool:
        """Whether everything was asked and agrees."""
        return not self.disagreements and not self.unreached


@dataclass
class OrphanedFile:
    """What a host has for work that is under way: a file in its image cache that is not a complete image, or KIND.part-of-SERVER.

    ``seconds_old``: since it was last written.
    """

    name: str
    seconds_old: float


@dataclass
class HostClaim:
    """A host's claim for a server. ``migration_uuid``: of the move that brought it there; None if it was built there."""

    instance_uuid: str
    migration_uuid: str | None
    numa_topology: InstanceNUMATopology | None = None
    pci_addresses: list[str] = field(default_factory=list)


@dataclass
class HostContents:
    """What is on a host, by server uuid."""

    guests: dict[str, PowerState] = field(default_factory=dict)
    disks: list[str] = field(default_factory=list)
    stashed: list[str] = field(default_factory=list)
    leftover_files: list[OrphanedFile] = field(default_factory=list)
    claims: list[HostClaim] = field(default_factory=list)
    # servers with a rescue disk
    rescue_disks: list[str] = field(default_factory=list)
    # The MAC addresses of the ports that are devices of the host, in each guest whose server holds devices; None: the host is of
    # an earlier release.
    port_devices: dict[str, list[str]] | None = None
    # Which store its disks are in that other hosts reach, too.
    storage: str | None = None

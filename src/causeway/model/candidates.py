"""Where a server could be moved to, and why not: what `causeway explain` shows. See `causeway.conductor.endpoints.candidates`."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class PreCheck:
    """The result of a check at a host. ``passed`` None: unknown before the move."""

    name: str
    passed: bool | None
    message: str = ""


@dataclass
class DiskMeasure:
    """The size of a server's disks on a host, without stashed ones; None if the driver does not know."""

    allocated_bytes: int | None


@dataclass
class MoveCandidate:
    """One host. ``refused_by``: who refused it (a filter, Placement, its own check), with the ``values`` that were compared.

    ``needs`` and ``free``: of the resource that it lacks. ``weights``: the score of each weigher; ``weight``: their sum.
    ``recipe``: how the server would be moved there. ``checked``: whether the host was asked for its checks; if not, ``note``
    says why.
    """

    host: str
    hypervisor_hostname: str
    cell: str
    cell_uuid: str
    fits: bool
    recipe: str | None = None
    refused_by: str | None = None
    reason: str | None = None
    values: dict[str, str] = field(default_factory=dict)
    needs: int | None = None
    free: int | None = None
    weights: dict[str, float] = field(default_factory=dict)
    weight: float | None = None
    chosen: bool = False
    checked: bool = False
    checks: list[PreCheck] = field(default_factory=list)
    note: str = ""


@dataclass
class MovedVolume:
    """``size_gb``: None if the records don't have it."""

    volume_id: str
    size_gb: int | None
    device_name: str | None = None
    is_root: bool = False


@dataclass
class MoveContents:
    """What a move would move. ``disk_bytes``: None if the server's host did not report it; ``note`` says why."""

    disk_bytes: int | None
    disk_gb: int = 0
    volumes: list[MovedVolume] = field(default_factory=list)
    ports: list[str] = field(default_factory=list)
    note: str = ""
    #: how its local disks would travel, and why; empty if it has none
    travel: str = ""
    #: what would happen to its memory; empty if it has none
    memory: str = ""


@dataclass
class MoveCandidates:
    """The answer. ``summary``: one sentence with host names. ``silent_cells`` did not answer, so their hosts are missing.

    ``refusal``: why the request itself would be refused now, on any host.
    """

    server: str
    source_host: str
    source_cell: str
    flavor: str
    summary: str
    moves: MoveContents
    candidates: list[MoveCandidate] = field(default_factory=list)
    silent_cells: list[str] = field(default_factory=list)
    refusal: str | None = None

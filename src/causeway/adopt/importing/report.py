"""What an import did, and proved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Counts:
    """``digest``: of all that was read of a kind, whatever its order: two imports that read the same have the same."""

    read: int = 0
    written: int = 0
    deleted: int = 0
    digest: int = 0

    def add(self, digest: str) -> None:
        self.read += 1
        self.digest ^= int(digest, 16)

    @property
    def is_unchanged(self) -> bool:
        return not self.written and not self.deleted


@dataclass(frozen=True)
class LeftOut:
    """Something of Nova's that has no record here, or an old one. ``why``: with what to do."""

    kind: str
    key: str
    name: str
    why: str


@dataclass
class ImportReport:
    """``ours``: servers on hosts that are Causeway's already, and what was made here: not touched."""

    by_kind: dict[str, Counts] = field(default_factory=dict)
    left_out: list[LeftOut] = field(default_factory=list)
    ours: int = 0

    def of(self, kind: str) -> Counts:
        return self.by_kind.setdefault(kind, Counts())

    @property
    def is_unchanged(self) -> bool:
        """Whether nothing had changed since the import before."""
        return all(counts.is_unchanged for counts in self.by_kind.values())

    def leave_out(self, kind: str, things: Iterable[tuple[str, str, str]]) -> None:
        """``things``: key, name, why."""
        self.left_out.extend(LeftOut(kind, *each) for each in things)


__all__ = ["Counts", "ImportReport", "LeftOut"]

"""What is wrong with a server, and how bad that is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# What is wrong: nothing can be done with it any more; records and what is there disagree; something is left that is nobody's.
# What is worse comes first.
STUCK, LOST, LEAKED = "stuck", "lost", "leaked"
KINDS = (STUCK, LOST, LEAKED)


@dataclass(frozen=True)
class Complaint:
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


def expect(kind: str, what: str, seen: Any, wanted: Any) -> Iterator[Complaint]:
    if seen != wanted:
        yield Complaint(kind, f"{what}: {seen}, not {wanted}")

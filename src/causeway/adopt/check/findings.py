"""What a check finds: of what, how bad it is, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What becomes of a server, a host or an option that is taken over, the best first."""

    AS_IT_IS = "as it is"
    DIFFERS = "differs"
    BLOCKS = "blocks"


class Kind(StrEnum):
    DEPLOYMENT = "deployment"
    HOST = "host"
    SERVER = "server"
    OPTION = "option"
    RULE = "rule"


@dataclass(frozen=True, slots=True)
class Subject:
    """``name``: as people call it, which may be any text of a tenant's."""

    kind: Kind
    id: str
    name: str = ""

    @property
    def key(self) -> tuple[Kind, str]:
        return self.kind, self.id


@dataclass(frozen=True, slots=True)
class Finding:
    """``code`` is stable, for programs; ``what`` is a sentence, ``to_do`` may be empty."""

    subject: Subject
    verdict: Verdict
    code: str
    what: str
    to_do: str = ""


def host(name: str) -> Subject:
    return Subject(Kind.HOST, name)


def server(uuid: str, name: str | None) -> Subject:
    return Subject(Kind.SERVER, uuid, name or "")


DEPLOYMENT = Subject(Kind.DEPLOYMENT, "deployment")

__all__ = ["DEPLOYMENT", "Finding", "Kind", "Subject", "Verdict", "host", "server"]

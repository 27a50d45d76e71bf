"""Databases that are not Causeway's, or not of the kind that is wanted: nothing reads or changes them.

Nova's are the likely ones: where its hosts are taken over, its URLs are at hand, and its tables have the same names as ours.
"""

from __future__ import annotations

from collections.abc import Collection

from causeway import errors

#: revisions of Nova's schemas, the oldest first: since Xena (24), which began with alembic
NOVA_API_REVISIONS = ("d67eeaabee36", "b30f573d3377", "cdeec0c85668")
NOVA_CELL_REVISIONS = (
    "8f2f1571d55b", "16f1fbcab42b", "ccb0fa1a2252", "960aac0e09ea", "1b91788ec3a6", "1acf2c98e646", "13863f4e1612",
    "d60bddf7a903", "2903cd72dc14", "ab450ba04102",
)  # fmt: skip
_NOVA_REVISIONS = frozenset({*NOVA_API_REVISIONS, *NOVA_CELL_REVISIONS})
# Tables of all its releases that no database of ours has.
_NOVA_TABLES = frozenset({"flavor_extra_specs", "instance_group_policy", "instance_extra", "instance_system_metadata"})
# Alembic makes it before all others.
_VERSIONS = "alembic_version"


def refuse(name: str, kind: str, revisions: Collection[str], tables: Collection[str], ours: Collection[str]) -> None:
    """Raises Misconfigured unless the database is new or Causeway's. It has no revision of its ``kind`` that is known.

    ``ours``: the tables of the kind, in this release.
    """
    if not _NOVA_REVISIONS.isdisjoint(revisions) or not _NOVA_TABLES.isdisjoint(tables):
        raise _refused(f"The database of {name} is one of Nova's. Causeway needs databases of its own")
    if any(not _is_numbered(revision) for revision in revisions):
        raise _refused(
            f"The database of {name} belongs to other software: its schema has revision {', '.join(sorted(revisions))}"
        )
    found = sorted(set(tables) & set(ours))
    if found and _VERSIONS not in tables:
        raise _refused(
            f"The database of {name} has tables that Causeway did not make ({', '.join(found[:3])}"
            f"{', ...' if len(found) > 3 else ''})"
        )
    # The other kind's, of this release or of another one.
    if "cell_mappings" in tables and kind == "cell":
        raise _refused(f"The database of {name} is an API database, not one of a cell")
    if "compute_nodes" in tables and kind == "api":
        raise _refused(f"The database of {name} is one of a cell, not an API database")


def _is_numbered(revision: str) -> bool:
    """Whether the revision is one of Causeway's, of any release."""
    return len(revision) == 4 and revision.isascii() and revision.isdecimal()


def _refused(why: str) -> errors.Misconfigured:
    return errors.Misconfigured(f"{why}. Nothing in it was changed: correct the URL, or make an empty database.")


__all__ = ["NOVA_API_REVISIONS", "NOVA_CELL_REVISIONS", "refuse"]

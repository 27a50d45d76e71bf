"""What the Compute API does not have: cells, operations, drains, audits, cleanups, candidates of moves, hosts of Nova."""

from __future__ import annotations

from causeway.api.answers.parts import (
    BOOLEAN,
    COUNT,
    NEXT,
    TEXT,
    TIME,
    UUID,
    many,
    mapping,
    null,
    of_type,
    record,
    shown_as,
    versions,
)
from causeway.api.request import JsonSchema
from causeway.hosts.adoption import CellStatus
from causeway.model.audit import Report
from causeway.model.candidates import MoveCandidates
from causeway.model.drains import Drain, DrainProgress, DrainServer, Pacing, Plan
from causeway.model.progress import OperationProgress

# Cells. Only the cell itself knows some of its counts: null while it does not answer.
_KNOWN = null(COUNT)
_CELL = record(
    {
        "id": UUID,
        "name": TEXT,
        "disabled": BOOLEAN,
        "answers": BOOLEAN,
        "hosts": record({"total": COUNT, "up": _KNOWN, "down": _KNOWN, "disabled": _KNOWN}),
        "servers": COUNT,
    }
)
CELLS = shown_as("cells", many(_CELL))
CELL = shown_as("cell", _CELL)
HOSTS_OF_CELL = shown_as(
    "hosts",
    many(
        record(
            {
                "host": TEXT,
                "hypervisor_hostname": TEXT,
                "up": BOOLEAN,
                "disabled": BOOLEAN,
                "disabled_reason": null(TEXT),
                "guests": COUNT,
            }
            | dict.fromkeys(("vcpus", "vcpus_used", "memory_mb", "memory_mb_used", "local_gb", "local_gb_used"), COUNT)
        )
    ),
)

_OPERATION = of_type(OperationProgress)
OPERATIONS = shown_as("operations", many(_OPERATION), {"operations_links": NEXT})
OPERATION = shown_as("operation", _OPERATION)


def _without(schema: JsonSchema, *names: str) -> JsonSchema:
    """An object's schema without some of its keys."""
    return record({name: part for name, part in schema["properties"].items() if name not in names})


def _with(schema: JsonSchema, **more: JsonSchema) -> JsonSchema:
    return record(schema["properties"] | more)


_PACING = null(_without(of_type(Pacing), "sent"))
_DRAIN = _with(of_type(Drain), name=TEXT, progress=of_type(DrainProgress), pacing=_PACING)
_PLAN = of_type(Plan)
DRAINS = shown_as("drains", many(_DRAIN), {"drains_links": NEXT})
DRAIN = shown_as("drain", _DRAIN)
NEW_DRAIN = versions(record({"drain": _DRAIN, "plan": _without(_PLAN, "servers")}))
PLAN = shown_as("plan", _PLAN)
SERVERS_OF_DRAIN = shown_as("servers", many(of_type(DrainServer)), {"servers_links": NEXT})

AUDIT = shown_as("audit", _with(of_type(Report), is_clean=BOOLEAN))
CLEANUPS = shown_as("cleanups", many(record({"id": TEXT, "host": TEXT, "server": UUID, "missed": TEXT, "since": TIME})))
CANDIDATES = shown_as("move_candidates", of_type(MoveCandidates))
ADOPTION = shown_as(
    "adoption",
    record({"is_finished": BOOLEAN, "imported": mapping(COUNT)}, maybe={"cells": many(of_type(CellStatus))}),
)

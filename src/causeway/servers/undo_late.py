"""Undoes the last call of a conductor that had lost an operation without noticing (see `causeway.sagas.late`).

Builds, attaches, evacuations and live migrations have their own. What computes do for an operation needs none, because a host
refuses orders of earlier epochs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from causeway.devices import late
from causeway.running.operation_run import OperationRun


def undo_attachments(run: OperationRun[Any], *, more_volumes: Iterable[str] = ()) -> None:
    """Deletes attachments that were made too late of the server's volumes, and of ``more_volumes``."""
    late.require_ended(run)
    late.delete_attachments(run, late.server_now(run), more_volumes=more_volumes)


def undo_claim(run: OperationRun[Any]) -> None:
    """For a server that had no host: also releases what was claimed for it if it has none now."""
    late.require_ended(run)
    server = late.server_now(run)
    late.delete_attachments(run, server)
    late.release_claim(run, server)

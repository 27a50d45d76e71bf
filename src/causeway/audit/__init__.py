"""The audit: holds everything that knows of servers against everything else, and lists where they disagree.

API database, cell databases, Placement, image, network and volume service, and the hypervisors of all hosts: each knows a
part of every server. What they say together is true only if it fits. This package reads all of it, says what does not fit,
and fixes what can be fixed without guessing.

It reads a living cloud:

- A move that is under way explains what it made: the journal (`moves`, their `MoveMemory`) says which hosts, cells,
  attachments and images belong to it; a finished one that waits for confirm or revert explains what it keeps for that.
- The records are read before and after everything else. A server that changed in between is in motion: nothing is said of it.
- A disagreement is reported when it is seen twice, a moment apart.

::

    services ──▶ snapshot ──▶ checks ──▶ again, for the suspects ──▶ Report ──▶ fixes (if asked) ──▶ audit again
                 gather       pure functions

- `snapshot`: what was read, as one thing that checks ask. `gather` fills it: lists, not a call for each server, but for port
  bindings, which the network service only lists port by port.
- `checks/`: one small pure function per kind of disagreement, `checks.CHECKS` lists them.
- `fixes`: what is safe: what moves that have ended orphaned, flags and states that follow from what is certain. A guest that
  runs is never touched, nor are disks that may be the only copy.
- `run`: the two looks, and the fixes.
"""

from causeway.audit.run import audit_cloud, audit_embedded
from causeway.audit.services import AuditServices
from causeway.model.audit import Disagreement, Fix, Report, Severity

__all__ = ["AuditServices", "Disagreement", "Fix", "Report", "Severity", "audit_cloud", "audit_embedded"]

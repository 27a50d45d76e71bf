"""The audit: compares everything that knows of servers, and lists where it disagrees.

API database, cell databases, Placement, image, network and volume service, and the hypervisors of all hosts each know a part of
every server, and these parts must fit. This package reads all of them, reports what does not fit, and fixes what can be fixed
without guessing.

It reads a running cloud:

- A move under way explains what it made: the journal (`moves`, their `MoveMemory`) says which hosts, cells, attachments and
  images belong to it. A finished move that waits for confirm or revert explains what it keeps for that.
- The records are read before and after everything else. A server that changed in between is in motion, and not judged.
- A disagreement is reported when it is seen twice, a moment apart.

::

    services ──▶ snapshot ──▶ checks ──▶ again, for the suspects ──▶ Report ──▶ fixes (if asked) ──▶ audit again
                 gather       pure functions

- `snapshot`: everything that was read, for the checks. `gather` fills it from lists, without a call for each server, except for
  port bindings, which the network service only lists port by port.
- `checks/`: one small pure function per kind of disagreement; `checks.CHECKS` lists them.
- `fixes`: safe fixes, of what ended moves orphaned, and of flags and states that follow from what is certain. A running guest is
  never touched, nor are disks that may be the only copy.
- `run`: the two looks, and the fixes.
"""

from causeway.audit.audit_run import audit_cloud, audit_embedded
from causeway.audit.services import AuditServices
from causeway.model.audit import Disagreement, Fix, Report, Severity

__all__ = ["AuditServices", "Disagreement", "Fix", "Report", "Severity", "audit_cloud", "audit_embedded"]

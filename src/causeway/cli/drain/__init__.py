"""``causeway drain``: many servers are moved away from a cell, from hosts, of a project.

A file for what one does with a drain.
"""

from __future__ import annotations

from causeway.cli.drain import actions, listed, plan, report, watch
from causeway.cli.drain.group import drain

__all__ = ["actions", "drain", "listed", "plan", "report", "watch"]

"""``causeway drain``: moves many servers out of a cell, from hosts or of a project.

Each file has the commands for one purpose.
"""

from __future__ import annotations

from causeway.cli.drain import actions, listed, plan, report, watch
from causeway.cli.drain.group import drain

__all__ = ["actions", "drain", "listed", "plan", "report", "watch"]

"""Causeway's own commands, as an operator calls them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from tests.functional.processes.own_process import CAUSEWAY

PATIENCE = 300.0


def causeway(*words: str, prefix: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """``prefix``: what its command begins with, to run it elsewhere."""
    return subprocess.run(
        [*prefix, str(CAUSEWAY), *words], capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL
    )

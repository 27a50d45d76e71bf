"""What modules share whose tests end threads of this process as if the process had died (`conftest.dies_at`)."""

from __future__ import annotations

from typing import Any

import pytest

#: a cloud in which others soon notice a death, and in which fault points can be used
SOON_NOTICED: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"rpc_response_timeout": 2},
        "moves": {"lease": 1.5, "first_pause": 0.1, "stuck_retry_interval": 0.5},
        "fault_injection": {"enabled": True},
    }
}
#: a cloud of two conductors, in which the other one soon takes over (with the fixture ``other``)
SOON_TAKEN_OVER: dict[str, Any] = {
    "overrides": {
        "DEFAULT": {"report_interval": 1, "rpc_response_timeout": 3},
        "conductor": {"recovery_interval": 2},
        "moves": {"lease": 2.0},
        "fault_injection": {"enabled": True},
    }
}
#: the marks of such a module
THREADS_DIE = [
    pytest.mark.embedded("threads of this process die"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

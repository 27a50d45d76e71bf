"""`causeway audit`, as an operator runs it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.functional.processes.deployment import Deployment
from tests.functional.processes.own_process import CAUSEWAY


def audit(cloud: Deployment) -> Any:
    """What `causeway audit` finds; an empty list if all is well."""
    files = [f"--config-file={cloud.directory / name}" for name in ("services.conf", "common.conf", "conductor1.conf")]
    files.append(f"--config-file={cloud.directory}/databases.conf")
    done = subprocess.run([CAUSEWAY, "audit", "--json", *files], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)["disagreements"]

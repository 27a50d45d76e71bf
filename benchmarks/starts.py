"""What a service costs before it serves anything: what it loads, in CPU time, memory and modules."""

from __future__ import annotations

import json
import subprocess
import sys
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

COMMANDS = {
    "api": "causeway.cli.web",
    "conductor": "causeway.cli.conductor",
    "scheduler": "causeway.cli.scheduler",
    "compute": "causeway.cli.compute",
    "console proxy": "causeway.cli.console_proxy",
}
# What a role imports only when its service is made is not in it.
_PROGRAM = """
import json, sys, time
import {module}
# Not ru_maxrss: a new process begins with its parent's.
(kib,) = [line.split()[1] for line in open("/proc/self/status") if line.startswith("VmRSS:")]
print(json.dumps({{"cpu": time.process_time(), "kib": int(kib), "modules": len(sys.modules)}}))
"""
# Seconds.
_PATIENCE = 120


def measure(rounds: int) -> dict[str, Any]:
    """role -> CPU ms, MiB and number of modules. A first round, which may compile the modules, is not counted."""
    found = {}
    for role, module in COMMANDS.items():
        runs = [_load(module) for _ in range(rounds + 1)][1:]
        found[role] = {
            "cpu_ms": round(median(run["cpu"] for run in runs) * 1000),
            "mib": round(median(run["kib"] for run in runs) / 1024),
            "modules": runs[0]["modules"],
        }
    return found


def _load(module: str) -> dict[str, Any]:
    said = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _PROGRAM.format(module=module)],
        check=True,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
    )
    loaded: dict[str, Any] = json.loads(said.stdout)
    return loaded


def show(found: dict[str, Any], console: Console) -> None:
    table = Table(title="What a service loads before it serves", title_justify="left")
    table.add_column("Role")
    for column in ("CPU ms", "MiB", "modules"):
        table.add_column(column, justify="right")
    for role, one in found.items():
        table.add_row(role, str(one["cpu_ms"]), str(one["mib"]), str(one["modules"]))
    console.print(table)

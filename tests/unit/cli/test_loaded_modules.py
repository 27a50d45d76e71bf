"""A service loads what its role needs: neither the parts of other roles nor large libraries that it never calls."""

from __future__ import annotations

import subprocess
import sys

import pytest

# module of a command -> packages that it must not load
FOREIGN = {
    "causeway.cli.compute": {"sqlalchemy", "alembic", "falcon", "keystonemiddleware", "causeway.store", "causeway.moves"},
    "causeway.cli.scheduler": {
        "falcon", "keystonemiddleware", "causeway.moves", "causeway.operations", "causeway.audit", "causeway.conductor.service",
    },
    "causeway.cli.conductor": {"falcon", "keystonemiddleware", "causeway.api", "causeway.compute.service"},
    "causeway.cli.console_proxy": {"falcon", "keystonemiddleware", "causeway.api", "causeway.moves"},
}  # fmt: skip


@pytest.mark.parametrize("command", FOREIGN)
def test_a_service_loads_only_what_is_its_own(command: str) -> None:
    said = subprocess.run(
        [sys.executable, "-c", f"import sys, {command}; print(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert FOREIGN[command].isdisjoint(said.stdout.split())

"""Outside software, each in an environment of its own from the package index (scripts/install-tool.sh)."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
# Seconds, on a busy machine: hundreds of packages.
_INSTALLED_WITHIN = 1800.0


@dataclass(frozen=True)
class Tool:
    """``.venv-NAME`` with these packages, at the versions of ``scripts/NAME-constraints.txt``."""

    name: str
    packages: tuple[str, ...]

    @property
    def bin(self) -> Path:
        """Where its programs are."""
        return ROOT / f".venv-{self.name}/bin"

    def install(self) -> None:
        """Quick when it is there.

        :raises subprocess.CalledProcessError: it said why.
        """
        subprocess.run(
            [ROOT / "scripts/install-tool.sh", self.name, *self.packages], check=True, timeout=_INSTALLED_WITHIN
        )

    def environment(self, clouds: Path, directory: Path) -> dict[str, str]:
        """Without the caller's: no cloud but this one is ever touched."""
        return {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "HOME": str(directory),
            "LANG": "C.UTF-8",
            "OS_CLIENT_CONFIG_FILE": str(clouds),
            "PYTHONWARNINGS": "ignore",
        }

"""Asks pip-audit for known vulnerabilities of the packages in constraints.txt, and whether its answer means anything.

pip-audit says "no known vulnerabilities" too if its database knows none of the packages, as behind a mirror of PyPI that has only
files. So this first asks for a version that has well-known vulnerabilities.

    scripts/audit_dependencies.py PIP_AUDIT [OPTIONS OF PIP_AUDIT ...]

Exit status: 0 no known vulnerabilities; 1 there are some; 3 nobody knows, since the database is unreachable or lacks packages.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
#: CVE-2018-18074 and later ones
VULNERABLE = "requests==2.19.0"
CLEAN, FOUND, UNKNOWN = 0, 1, 3
# Seconds for each question: hundreds of packages are asked for one by one.
_TIMEOUT = 900


class Unreachable(Exception):
    """pip-audit got no answer from its database."""


def main(arguments: Sequence[str]) -> int:
    """Prints what was found; returns the exit status."""
    program, *options = arguments
    try:
        with tempfile.TemporaryDirectory() as folder:
            known = Path(folder) / "vulnerable.txt"
            known.write_text(VULNERABLE + "\n")
            if not any(each.get("vulns") for each in ask(program, options, known)):
                raise Unreachable(f"it knows no vulnerability of {VULNERABLE}, which has some")
        packages = ask(program, options, ROOT / "constraints.txt")
    except Unreachable as failure:
        print(f"audit: nothing was audited. pip-audit's database is unreachable from here: {failure}", file=sys.stderr)
        return UNKNOWN
    vulnerable = [each for each in packages if each.get("vulns")]
    skipped = [each for each in packages if "skip_reason" in each]
    for each in vulnerable:
        for vulnerability in each["vulns"]:
            fixed = ", ".join(vulnerability["fix_versions"]) or "no version"
            print(f"{each['name']} {each['version']}: {vulnerability['id']}, fixed in {fixed}")
    for each in skipped:
        print(f"{each['name']}: not audited: {each['skip_reason']}", file=sys.stderr)
    print(f"audit: {len(packages)} packages, {len(vulnerable)} with known vulnerabilities, {len(skipped)} not audited")
    if vulnerable:
        return FOUND
    return UNKNOWN if skipped else CLEAN


def ask(program: str, options: Sequence[str], requirements: Path) -> list[dict[str, Any]]:
    """What pip-audit knows of each package in ``requirements``. Raises Unreachable."""
    command = [program, *options, "--no-deps", "--disable-pip", "--format=json", f"--requirement={requirements}"]
    try:
        # Its exit status does not distinguish vulnerabilities from failures.
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except subprocess.TimeoutExpired as failure:
        raise Unreachable(f"no answer within {_TIMEOUT} s") from failure
    try:
        found: list[dict[str, Any]] = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError) as failure:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise Unreachable(lines[-1]) from failure
    return found


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} PIP_AUDIT [OPTIONS ...]")
    sys.exit(main(sys.argv[1:]))

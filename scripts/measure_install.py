"""How much room an installation takes: builds the wheels, installs them into a new environment, and adds up by package.

    python scripts/measure_install.py libvirt              # a compute host
    python scripts/measure_install.py api postgresql       # with these extras
    python scripts/measure_install.py libvirt --at-most 150
    python scripts/measure_install.py libvirt --resolved   # with all that pip finds, in the versions of constraints.txt
    python scripts/measure_install.py libvirt --json

By default what requirements/ lists is installed, checked by hash, as docs/deployment.md does it. Counted is what the files take
on the disk, compiled ones too, in megabytes (10**6 bytes). pip, which a new environment has, is counted by itself and not in the
sum.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DISTRIBUTIONS = (ROOT, ROOT / "distributions/embedded")
# Seconds for one call of pip or of a build.
PATIENCE = 1200
# Those whose code is in the second wheel.
WITH_SECOND_WHEEL = {"embedded", "demo"}
# What a new environment has before anything is installed.
TOOLS = {"pip"}

# Runs in the new environment: package -> bytes on the disk, and whether it is a tool.
COUNT = """
import json, os
from importlib import metadata
sizes = {}
for found in metadata.distributions():
    total = 0
    for file in found.files or ():
        try:
            total += os.lstat(found.locate_file(file)).st_blocks * 512
        except OSError:
            pass
    sizes[found.name] = total
print(json.dumps(sizes))
"""


def run(*command: str | Path) -> str:
    """What a command prints. Raises SystemExit with all that it said if it fails."""
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> list[Path]:
    """The wheels of this checkout."""
    for distribution in DISTRIBUTIONS:
        # By way of the source archive: a wheel of this folder could have what an earlier build has left here.
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, distribution)
    return sorted(folder.glob("*.whl"))


def install(wheels: Sequence[Path], extras: Sequence[str], environment: Path, *, resolved: bool) -> Path:
    """A new environment with the wheel and its extras; its interpreter."""
    run(sys.executable, "-m", "venv", environment)
    python = environment / "bin/python"
    pip = (python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--progress-bar", "off")
    ours = [wheel for wheel in wheels if "embedded" not in wheel.name or WITH_SECOND_WHEEL & set(extras)]
    if resolved:
        # By their paths: an index may have another project of this name.
        wanted = [
            f"{wheel}[{','.join(extras)}]" if extras and wheel.name.startswith("causeway-") else wheel for wheel in ours
        ]
        run(*pip, "--constraint", "constraints.txt", *wanted)
        return python
    run(*pip, "--require-hashes", "--no-deps", "-r", "requirements/build.txt")
    lists = [part for extra in extras or ["base"] for part in ("-r", f"requirements/{extra}.txt")]
    run(*pip, "--require-hashes", "--no-deps", "--no-build-isolation", *lists)
    run(*pip, "--no-deps", "--no-index", *ours)
    return python


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", help="extras of pyproject.toml")
    parser.add_argument(
        "--resolved", action="store_true", help="what pip finds by itself, in the versions of constraints.txt"
    )
    parser.add_argument("--at-most", type=float, metavar="MB", help="fail (1) if it takes more")
    parser.add_argument("--json", action="store_true", help="JSON instead of a table")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wheels = build(Path(folder) / "wheels")
        python = install(wheels, arguments.extras, Path(folder) / "environment", resolved=arguments.resolved)
        sizes: dict[str, int] = json.loads(run(python, "-c", COUNT))
    show(sizes, arguments.extras, as_json=arguments.json)
    taken = total(sizes)
    if arguments.at_most is not None and taken > arguments.at_most:
        raise SystemExit(f"It takes {taken:.1f} MB, more than {arguments.at_most:g}.")


def total(sizes: dict[str, int]) -> float:
    return sum(size for name, size in sizes.items() if name not in TOOLS) / 1e6


def show(sizes: dict[str, int], extras: Sequence[str], *, as_json: bool) -> None:
    packages = {
        name: round(size / 1e6, 1) for name, size in sorted(sizes.items(), key=lambda each: (-each[1], each[0]))
    }
    if as_json:
        found: dict[str, Any] = {"extras": list(extras), "megabytes": round(total(sizes), 1), "packages": packages}
        print(json.dumps(found, indent=2))
        return
    for name, size in packages.items():
        print(f"{size:8.1f}  {name}{' (not in the sum)' if name in TOOLS else ''}")
    print(f"{total(sizes):8.1f}  MB in {len(packages) - len(TOOLS & set(packages))} packages")


if __name__ == "__main__":
    main()

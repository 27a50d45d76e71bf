"""Writes requirements/ and constraints.txt: the exact packages of each extra, with the hashes that pip checks.

    python scripts/lock_requirements.py             # at the versions of constraints.txt: after a change of pyproject.toml
    python scripts/lock_requirements.py --upgrade   # at the newest versions that pyproject.toml allows

`requirements/base.txt` has what every process needs, `requirements/EXTRA.txt` what an extra adds, all with what these packages
need themselves, and `requirements/build.txt` what packages without a wheel are built with. They are for
`pip install --require-hashes --no-deps`: pip takes hashes for packages that others need only from a list of requirements, not
from constraints. So constraints.txt has names and versions only, for those who let pip choose the packages.

The hashes are of the files for the interpreter and the machine that this runs on: Python 3.11 on x86-64, as on Debian 12.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "requirements"
CONSTRAINTS = ROOT / "constraints.txt"
PROJECTS = (ROOT / "pyproject.toml", ROOT / "distributions/embedded/pyproject.toml")
BASE, BUILD = "base", "build"
# Packages that others name as requirements and nothing here imports: docs/architecture/dependencies.md says why they stay out.
LEFT_OUT = {"eventlet"}
# Seconds for pip to find all packages.
PATIENCE = 1800

HEAD = """\
# {what}. Written by scripts/lock_requirements.py, for Python 3.11 on x86-64:
# pip install --require-hashes --no-deps -r requirements/{name}.txt
"""


def our_requirements() -> dict[str, dict[str, list[Requirement]]]:
    """Distribution of ours -> extra ("": without any) -> requirements."""
    found = {}
    for path in PROJECTS:
        project = tomllib.loads(path.read_text())["project"]
        lists = {"": project.get("dependencies", []), **project.get("optional-dependencies", {})}
        found[project["name"]] = {extra: [Requirement(each) for each in listed] for extra, listed in lists.items()}
    return found


def of_others(
    ours: dict[str, dict[str, list[Requirement]]], name: str, extras: Iterable[str], seen: set[tuple[str, str]]
) -> list[Requirement]:
    """What a distribution of ours with these extras requires of other people's, with what our own ones require."""
    found = []
    for extra in ("", *extras):
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        for one in ours[name][extra]:
            found += of_others(ours, one.name, sorted(one.extras), seen) if one.name in ours else [one]
    return found


def resolve(requirements: Iterable[Requirement], *, upgrade: bool) -> dict[str, dict[str, Any]]:
    """Package -> what pip reports of the version that it would install."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        wanted = Path(folder) / "wanted.txt"
        wanted.write_text("".join(f"{one}\n" for one in requirements))
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        command += ["--report", str(report), "-r", str(wanted)]
        command += [] if upgrade else ["--constraint", str(CONSTRAINTS)]
        subprocess.run(command, check=True, timeout=PATIENCE)
        return {canonicalize_name(one["metadata"]["name"]): one for one in json.loads(report.read_text())["install"]}


def closure(requirements: Iterable[Requirement], packages: dict[str, dict[str, Any]]) -> set[str]:
    """The packages that these requirements lead to, without those that are left out."""
    found: dict[str, set[str]] = {}
    waiting = list(requirements)
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name in LEFT_OUT or (name in found and one.extras <= found[name]):
            continue
        found[name] = found.get(name, set()) | one.extras
        for text in packages[name]["metadata"].get("requires_dist", []):
            next_one = Requirement(text)
            if next_one.marker is None or any(next_one.marker.evaluate({"extra": each}) for each in ("", *found[name])):
                waiting.append(next_one)
    return set(found)


def line(package: dict[str, Any]) -> str:
    archive = package["download_info"]["archive_info"]
    return f"{package['metadata']['name']}=={package['metadata']['version']} --hash={archive['hash'].replace('=', ':', 1)}\n"


def write(name: str, what: str, packages: Iterable[dict[str, Any]], *, on: str | None = None) -> None:
    lines = sorted((line(each) for each in packages), key=str.lower)
    text = HEAD.format(what=what, name=name) + (f"-r {on}.txt\n" if on else "") + "".join(lines)
    (FOLDER / f"{name}.txt").write_text(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upgrade", action="store_true", help="the newest versions, not those of constraints.txt")
    arguments = parser.parse_args()
    ours = our_requirements()
    extras = [extra for extra in ours["causeway"] if extra]
    build = [Requirement(each) for each in tomllib.loads(PROJECTS[0].read_text())["build-system"]["requires"]]
    of_extra = {extra: of_others(ours, "causeway", [extra], set()) for extra in extras}
    of_base = of_others(ours, "causeway", [], set())
    everything = {str(one): one for one in (*build, *of_base, *(one for found in of_extra.values() for one in found))}
    packages = resolve(everything.values(), upgrade=arguments.upgrade)
    pinned = (f"{each['metadata']['name']}=={each['metadata']['version']}\n" for each in packages.values())
    CONSTRAINTS.write_text("".join(sorted(pinned, key=str.lower)))
    FOLDER.mkdir(exist_ok=True)
    base = closure(of_base, packages)
    write(BASE, "What every process of Causeway needs", [packages[name] for name in base])
    write(BUILD, "What packages without a wheel are built with", [packages[name] for name in closure(build, packages)])
    for extra, requirements in of_extra.items():
        added = closure(requirements, packages) - base
        write(extra, f"What causeway[{extra}] needs", [packages[name] for name in added], on=BASE)


if __name__ == "__main__":
    main()

"""Ansible's collection for OpenStack: a playbook that makes a server and what belongs to it, and one that deletes it.

Each is run twice, and the first also with a larger flavor. A case is a task of a run. A task of a repeated run fails if it
changed something: what the cloud shows is then not what the playbook asked for.
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.clients.cloud import IMAGE, MEMBER, PRIVATE, PUBLIC, connected
from tests.integration.clients.counts import Counts
from tests.integration.clients.tools import Tool

TOOL = Tool("ansible", ("ansible-core", "ansible", "openstacksdk"))
PLAYBOOKS = Path(__file__).parent / "playbooks"
# Seconds: for one run of a playbook.
PATIENCE = 900.0


@dataclass(frozen=True)
class Run:
    """``changes``: exactly these of its tasks change something."""

    about: str
    playbook: str
    flavor: str
    changes: frozenset[str] = frozenset()


_MADE = frozenset(
    ("key pair", "server group", "network", "subnet", "security group", "rule of the security group", "port", "volumes")
)
_OF_THE_SERVER = frozenset(("server", "volumes attached", "floating IP"))
RUNS = (
    Run("make", "present.yaml", "m1.tiny", _MADE | _OF_THE_SERVER),
    Run("make again", "present.yaml", "m1.tiny"),
    Run("larger flavor", "present.yaml", "m1.small", frozenset(("resize to another flavor", "resize confirmed"))),
    Run("larger flavor again", "present.yaml", "m1.small"),
    Run("delete", "absent.yaml", "m1.small", _MADE - {"rule of the security group"} | {"server"}),
    Run("delete again", "absent.yaml", "m1.small"),
)


def run(regex: str, clouds: Path, directory: Path, json_file: Path | None) -> int:
    """``regex``: which runs, by what they are about."""
    counts = Counts()
    for each in (one for one in RUNS if re.search(regex, one.about)):
        _count(each, _tasks(each, clouds, directory), counts)
    return counts.report(json_file)


def _tasks(of: Run, clouds: Path, directory: Path) -> list[dict[str, Any]]:
    with connected(clouds, MEMBER) as member:
        compute = member.compute.get_endpoint()
    given = {
        "cloud": MEMBER, "image": IMAGE, "network": PRIVATE, "outside": PUBLIC, "flavor": of.flavor,
        "public_key": str(PLAYBOOKS / "key.pub"), "compute": compute,
    }  # fmt: skip
    environment = TOOL.environment(clouds, directory) | {
        "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_HOME": str(directory / "ansible"),
        "ANSIBLE_LOCAL_TEMP": str(directory / "ansible/tmp"),
        "ANSIBLE_PYTHON_INTERPRETER": str(TOOL.bin / "python"),
    }
    ended = subprocess.run(
        [TOOL.bin / "ansible-playbook", PLAYBOOKS / of.playbook, "--extra-vars", json.dumps(given)],
        env=environment, cwd=directory, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    (directory / f"{of.about}.json").write_text(ended.stdout)
    if not ended.stdout.startswith("{"):
        raise RuntimeError(f"ansible-playbook ran nothing: {ended.stdout} {ended.stderr}")
    tasks: list[dict[str, Any]] = [task for play in json.loads(ended.stdout)["plays"] for task in play["tasks"]]
    return tasks


def _count(of: Run, tasks: list[dict[str, Any]], counts: Counts) -> None:
    """A task that was skipped because nothing was to do is no case."""
    for task in tasks:
        name, result = task["task"]["name"], task["hosts"]["localhost"]
        changed, expected = result.get("changed", False), name in of.changes
        if result.get("failed", False):
            wrong = "failed"
        elif changed != expected:
            wrong = "changed something" if changed else "changed nothing"
        elif result.get("skipped", False):
            continue
        else:
            wrong = ""
        case = f"{of.about}: {name}"
        print(f"{'fail' if wrong else 'success':8}{case} {'(changed)' if changed else ''}".rstrip())
        if wrong:
            counts.failed[case] = f"{wrong}: {json.dumps(result, indent=1)}"
        else:
            counts.passed += 1
    for name in of.changes - {task["task"]["name"] for task in tasks}:
        counts.failed[f"{of.about}: {name}"] = "was not run"

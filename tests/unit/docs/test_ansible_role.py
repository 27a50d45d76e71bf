"""deploy/ansible: its commands exist, what they name is there, and nothing of Nova's is touched without a tag.

Ansible itself is no requirement of the tests. What was run with it is in the role's README.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jinja2.nativetypes import NativeEnvironment

from tests.unit.docs.examples import Example, check

ANSIBLE = Path(__file__).parents[3] / "deploy/ansible"
ROLE = ANSIBLE / "roles/causeway_compute"
TASKS = sorted((ROLE / "tasks").glob("*.yml"))
PLAYBOOK = ANSIBLE / "compute-hosts.yml"
TAGS = {"look", "take", "hand_back"}


def loaded(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def variables() -> dict[str, Any]:
    (play,) = loaded(PLAYBOOK)
    status = {"stdout": json.dumps([{"hosts": [{"host": "compute1", "state": "taken"}]}])}
    own = {"ansible_play_batch": ["compute1", "compute2"], "causeway_status": status}
    return {**loaded(ROLE / "defaults/main.yml"), **play["vars"], **own}


def all_tasks() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in TASKS:
        yield from ((path.name, task) for task in loaded(path))
    (play,) = loaded(PLAYBOOK)
    yield from ((PLAYBOOK.name, task) for task in play["pre_tasks"] + play["post_tasks"])


def rendered(text: Any, known: dict[str, Any]) -> Any:
    """As Ansible would: what a variable names is rendered, too."""
    if isinstance(text, list):
        return [rendered(each, known) for each in text]
    if not isinstance(text, str) or "{{" not in text:
        return text
    environment = NativeEnvironment()
    environment.filters |= {
        "regex_replace": lambda value, pattern, new: re.sub(pattern, new, value, count=1),
        "from_json": json.loads,
        "flatten": lambda lists: [each for one in lists for each in one],
        "intersect": lambda one, other: [each for each in one if each in other],
    }
    needed = {name: rendered(value, known) for name, value in known.items() if re.search(rf"\b{name}\b", text)}
    return environment.from_string(text).render(needed)


COMMANDS = [
    (f"{where}: {task['name']}", task["ansible.builtin.command"]["argv"], task.get("vars", {}))
    for where, task in all_tasks()
    if "ansible.builtin.command" in task
]


@pytest.mark.parametrize(("where", "argv", "own"), COMMANDS, ids=lambda each: each if isinstance(each, str) else "")
def test_commands_of_the_role_and_the_playbook_can_be_typed(where: str, argv: str, own: dict[str, Any]) -> None:
    words = rendered(argv, variables() | own)
    assert words[0].endswith("causeway")
    check(Example(where, tuple(words)))


def test_all_commands_of_the_role_and_the_playbook_are_found() -> None:
    said = {" ".join(rendered(argv, variables() | own)[1:3]) for _where, argv, own in COMMANDS}
    assert said == {"adopt host-config", "adopt import", "adopt host", "adopt hand-back", "adopt status"}


def test_only_hosts_that_are_causeways_are_handed_back() -> None:
    assert rendered("{{ causeway_owned }}", variables()) == ["compute1"]


def test_whatever_does_more_than_prepare_needs_its_tag() -> None:
    tags = {task["ansible.builtin.import_tasks"]: set(task["tags"]) for task in loaded(ROLE / "tasks/main.yml")}
    assert tags.pop("prepare.yml") == {"prepare"}
    assert tags == {f"{tag}.yml": {"never", tag} for tag in TAGS}
    (play,) = loaded(PLAYBOOK)
    for task in play["pre_tasks"] + play["post_tasks"]:
        assert "never" in task["tags"] and TAGS & set(task["tags"]), task["name"]


def test_preparing_starts_and_stops_nothing() -> None:
    for task in loaded(ROLE / "tasks/prepare.yml"):
        assert task.get("ansible.builtin.systemd_service", {"daemon_reload": True}) == {"daemon_reload": True}
        assert "ansible.builtin.service" not in task


def test_files_that_the_role_installs_are_those_that_the_command_makes() -> None:
    source = (Path(__file__).parents[3] / "src/causeway/cli/adopt/host_config.py").read_text()
    (install,) = [task for task in loaded(ROLE / "tasks/prepare.yml") if task["name"] == "Install the units"]
    for item in install["loop"]:
        assert f'"{item["made"]}"' in source


def test_no_secret_is_on_a_command_line_or_in_ansibles_output() -> None:
    for _where, task in all_tasks():
        for module in ("ansible.builtin.command", "ansible.builtin.copy"):
            called = task.get(module, {})
            assert "causeway_transport_url }}" not in str(called.get("argv", ""))
            assert "causeway_overrides" not in str(called) or task["no_log"] is True

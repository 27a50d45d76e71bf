"""Nova is frozen by a file that only refuses changes, and is waited for until it is quiet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from causeway import errors
from causeway.adopt import freezing
from causeway.adopt.nova import NovaCloud
from causeway.cli.main import cli
from tests.unit.adopt.nova_cloud import NovaOnDisk


@pytest.fixture
def nova(tmp_path: Path) -> NovaOnDisk:
    """One in which nothing is under way."""
    made = NovaOnDisk(tmp_path)
    for cell in ("cell1", "cell2"):
        made.execute(cell, "UPDATE instances SET task_state = NULL, vm_state = 'active' WHERE vm_state != 'error'")
        made.execute(cell, "UPDATE migrations SET status = 'confirmed'")
    return made


@pytest.fixture
def cloud(nova: NovaOnDisk) -> Iterator[NovaCloud]:
    with NovaCloud([nova.conf]) as opened:
        yield opened


@dataclass
class Clock:
    """``at``: what happens at a moment."""

    seconds: float = 0.0
    at: dict[float, object] = field(default_factory=dict)
    said: list[Counter[str]] = field(default_factory=list)

    def wait(self, seconds: float) -> None:
        self.seconds += seconds
        happens = self.at.pop(self.seconds, None)
        if callable(happens):
            happens()

    def is_quiet(self, cloud: NovaCloud, *, seconds: float = 10, timeout: float = 60) -> bool:
        return freezing.wait_until_quiet(
            cloud, seconds=seconds, timeout=timeout, wait=self.wait, now=lambda: self.seconds, report=self.said.append
        )


def test_only_changes_by_users_are_refused() -> None:
    denied = freezing.denied_rules()
    assert set(denied.values()) == {"!"}
    assert {"os_compute_api:servers:create", "os_compute_api:servers:delete", "os_compute_api:servers:reboot"} <= set(
        denied
    )
    for name in ("servers:show", "servers:index", "os-console-output", "os-server-external-events:create"):
        assert f"os_compute_api:{name}" not in denied


def test_a_nova_that_rests_is_quiet_after_the_time(cloud: NovaCloud) -> None:
    clock = Clock()
    assert clock.is_quiet(cloud)
    assert (clock.seconds, clock.said) == (10, [Counter()])


def test_a_change_begins_the_time_anew(cloud: NovaCloud, nova: NovaOnDisk) -> None:
    clock = Clock(
        at={6.0: lambda: nova.execute("cell1", "UPDATE instances SET updated_at = '2030-01-01 00:00:00' WHERE id = 1")}
    )
    assert clock.is_quiet(cloud)
    assert clock.seconds == 16


@pytest.mark.parametrize(
    ("cell", "statement", "what"),
    [
        ("cell1", "UPDATE instances SET task_state = 'rebooting' WHERE id = 1", "tasks in cell1"),
        ("cell2", "UPDATE instances SET vm_state = 'building' WHERE id = 1", "builds in cell2"),
        (
            "cell1",
            "UPDATE instances SET vm_state = 'resized' WHERE id = 1",
            "resizes that wait for confirm or revert in cell1",
        ),
        (
            "cell2",
            "UPDATE migrations SET status = 'migrating' WHERE id = (SELECT min(id) FROM migrations)",
            "migrations in cell2",
        ),
        (
            "api",
            "INSERT INTO build_requests (instance_uuid, project_id) VALUES ('x', 'p')",
            "builds that are not scheduled",
        ),
    ],
)
def test_what_is_under_way_is_said_and_waited_for(
    cloud: NovaCloud, nova: NovaOnDisk, cell: str, statement: str, what: str
) -> None:
    nova.execute(cell, statement)
    clock = Clock()
    assert not clock.is_quiet(cloud)
    assert clock.said == [Counter({what: 1})]
    assert clock.seconds == 60


def test_the_file_of_another_is_neither_written_over_nor_deleted(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text("# mine\n")
    for act in (freezing.write_policy, freezing.lift):
        with pytest.raises(errors.Conflict):
            act(path)
    assert path.read_text() == "# mine\n"


def test_the_command_writes_the_file_waits_and_deletes_it_again(nova: NovaOnDisk, tmp_path: Path) -> None:
    path = tmp_path / "freeze.yaml"
    words = ["adopt", "freeze", f"--nova-config={nova.conf}", f"--policy-file={path}"]
    frozen = CliRunner().invoke(cli, [*words, "--quiet=1"])
    assert frozen.exit_code == 0 and "Nova is quiet" in frozen.output
    assert yaml.safe_load(path.read_text()) == freezing.denied_rules()
    nova.execute("cell1", "UPDATE instances SET task_state = 'rebooting' WHERE id = 1")
    busy = CliRunner().invoke(cli, [*words, "--quiet=1", "--timeout=1"])
    assert busy.exit_code == 1 and "1 tasks in cell1" in busy.output
    lifted = CliRunner().invoke(cli, [*words, "--lift"])
    assert lifted.exit_code == 0 and not path.exists()

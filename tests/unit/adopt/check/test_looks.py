"""What was seen on a host is compared with Nova's records of its servers, before these are imported."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from causeway.adopt.check import Report, Verdict
from causeway.adopt.hosts import RecordedServer
from causeway.adopt.hosts.compare_disks import base_of
from causeway.adopt.importing.server_batches import server_batches, surroundings_of
from causeway.adopt.nova import NovaCloud
from causeway.adopt.records import server_of
from causeway.cli.adopt.shown import as_json_text
from causeway.cli.main import cli
from causeway.model.found_host import (
    FoundDisk,
    FoundFolder,
    FoundGuest,
    FoundHost,
    FoundHypervisor,
    FoundIdentity,
    FoundInterface,
)
from causeway.model.states import PowerState
from tests.unit.adopt.check.clean_cloud import ACTIVE, NODES, CleanCloud, codes, instance

HOST = "cell1-host1"
INSTANCES, MOUNTS = "/var/lib/nova/instances", "/var/lib/nova/mnt"
STRANGER = "99999999-0000-4000-8000-000000000000"


def servers(cloud: CleanCloud) -> list[RecordedServer]:
    with ExitStack() as stack:
        nova = stack.enter_context(NovaCloud([cloud.nova.conf]))
        around = surroundings_of(nova)
        made = [
            server_of(rows, around) for cell in nova.cells for batch in server_batches(nova, cell, 10) for rows in batch
        ]
    return [RecordedServer(each.instance, each.block_devices) for each in made if each.instance.host == HOST]


def seen(cloud: CleanCloud) -> FoundHost:
    """A host that agrees with the records."""
    guests = [
        FoundGuest(
            each.uuid,
            each.instance.guest_name or "",
            each.instance.power_state,
            is_novas=True,
            disks=[
                FoundDisk(
                    "vda",
                    source=f"{INSTANCES}/{each.uuid}/{name}",
                    disk_format="qcow2",
                    size=2**40,
                    base=f"{INSTANCES}/_base/{base_of(each.instance.image_ref)}",
                )
                for name in each.local_disks()
            ],
            interfaces=[FoundInterface(vif.address) for vif in each.instance.network_info],
            has_saved_memory=True,
        )
        for each in servers(cloud)
    ]
    return FoundHost(
        HOST,
        identities=[FoundIdentity("/var/lib/nova/compute_id", NODES[HOST])],
        hypervisor=FoundHypervisor(
            hostname=HOST,
            guests=guests,
            instances_path=INSTANCES,
            folders=[FoundFolder(guest.uuid) for guest in guests],
            mount_base=MOUNTS,
        ),
    )


def checked(cloud: CleanCloud, found: FoundHost) -> Report:
    path = cloud.folder / "look.json"
    path.write_text(as_json_text(found))
    return cloud.check(looks=(path,))


def test_a_host_that_agrees_with_its_records_has_no_finding(tmp_path: Path) -> None:
    cloud = CleanCloud(tmp_path)
    found = seen(cloud)
    assert len(found.hypervisor.guests) > 1
    report = checked(cloud, found)
    assert [each for each in report.findings if each.code.startswith("look.")] == []
    assert {each.what for each in report.not_checked} >= {"Guests and files of 3 hosts"}


@pytest.mark.parametrize(
    ("code", "subject", "verdict", "change"),
    [
        ("look.guest.missing", ACTIVE, Verdict.BLOCKS, lambda found: found.hypervisor.guests.clear()),
        (
            "look.guest.unknown",
            HOST,
            Verdict.BLOCKS,
            lambda found: found.hypervisor.guests.append(
                FoundGuest(STRANGER, "instance-000000aa", PowerState.RUNNING, is_novas=True)
            ),
        ),
        (
            "look.guest.name",
            ACTIVE,
            Verdict.DIFFERS,
            lambda found: setattr(_guest(found), "name", "instance-000000ff"),
        ),
        (
            "look.disk.format",
            ACTIVE,
            Verdict.BLOCKS,
            lambda found: setattr(_guest(found).disks[0], "disk_format", "raw"),
        ),
        ("look.identity.differs", HOST, Verdict.BLOCKS, lambda found: setattr(found.identities[0], "uuid", STRANGER)),
    ],
)
def test_what_was_seen_otherwise_is_found(
    tmp_path: Path, code: str, subject: str, verdict: Verdict, change: Callable[[FoundHost], object]
) -> None:
    cloud = CleanCloud(tmp_path)
    found = seen(cloud)
    change(found)
    report = checked(cloud, found)
    (finding, *_others) = [each for each in report.findings if each.code == code and each.subject.id == subject]
    assert finding.verdict is verdict
    assert report.is_blocked is (verdict is Verdict.BLOCKS)


def _guest(found: FoundHost) -> FoundGuest:
    return next(each for each in found.hypervisor.guests if each.uuid == ACTIVE)


def test_what_the_records_say_already_is_not_said_again(tmp_path: Path) -> None:
    found = seen(CleanCloud(tmp_path))
    busy = tmp_path / "busy"
    busy.mkdir()
    cloud = CleanCloud(busy, lambda content: instance(content).update(task_state="rebooting"))
    assert codes(checked(cloud, found), ACTIVE) == {"task"}


def test_a_guest_of_a_server_whose_record_can_not_be_read_is_not_unknown(tmp_path: Path) -> None:
    found = seen(CleanCloud(tmp_path))
    strange = tmp_path / "strange"
    strange.mkdir()
    cloud = CleanCloud(strange, lambda content: instance(content).update(vm_state="strange"))
    assert codes(checked(cloud, found), HOST) == set()


def test_a_host_that_nova_does_not_know_is_not_checked(tmp_path: Path) -> None:
    cloud = CleanCloud(tmp_path)
    report = checked(cloud, FoundHost("elsewhere"))
    assert "What was seen on elsewhere" in {each.what for each in report.not_checked}


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"host": 1}', "\x00"])
def test_a_file_that_is_no_look_is_refused(tmp_path: Path, text: str) -> None:
    cloud = CleanCloud(tmp_path)
    path = tmp_path / "look.json"
    path.write_text(text)
    words = ["adopt", "check", "--nova-config", str(cloud.nova.conf), "--look", str(path)]
    said = CliRunner().invoke(cli, words)
    assert said.exit_code == 2
    assert "is not what `causeway adopt look --json` prints" in said.output


@pytest.mark.parametrize("form", ["text", "html", "markdown", "json"])
def test_every_form_shows_what_was_seen(tmp_path: Path, form: str) -> None:
    cloud = CleanCloud(tmp_path)
    found = seen(cloud)
    found.hypervisor.guests.append(FoundGuest(STRANGER, "<b>instance\x1b</b>", PowerState.RUNNING, is_novas=True))
    path = tmp_path / "look.json"
    path.write_text(json.dumps(msgspec.to_builtins(found, str_keys=True)))
    words = ["adopt", "check", "--nova-config", str(cloud.nova.conf), "--look", str(path), "--format", form]
    said = CliRunner().invoke(cli, words)
    assert said.exit_code == 1
    assert "look.guest.unknown" in said.output
    assert "\x1b" not in said.output
    assert form in ("text", "json") or "<b>" not in said.output

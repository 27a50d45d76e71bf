"""A machine that is off: what ran on it is off, and nothing arrives there, nor from there."""

from __future__ import annotations

from pathlib import Path

from causeway.model.states import PowerState
from causeway.virt.simulated.guest import Guest
from causeway.virt.simulated.host_files import HostFiles
from tests.faults.clouds.site import Site

HOST, OTHER = "cell1-host1", "cell1-host2"


def files_of(site: Site, host: str = HOST) -> HostFiles:
    files = HostFiles(host, site.state.host(host))
    files.load()
    return files


def guest(uuid: str) -> Guest:
    return Guest(uuid, HOST, uuid, 1, 128, "/dev/vda", "disk", PowerState.RUNNING)


def test_a_machine_that_is_off_runs_nothing_and_expects_nothing(tmp_path: Path) -> None:
    site = Site(tmp_path)
    before = files_of(site)
    before.save(guest("ran"))
    before.expect(guest("comes"))
    assert site.switch_off(HOST) == {"ran"}
    after = files_of(site)
    assert after.list_guests() == {"ran": PowerState.SHUTDOWN}
    # A source whose guest finds nobody who expects it keeps it.
    assert not after.incoming("comes").exists()


def test_what_a_machine_that_is_off_sent_is_expected_no_longer(tmp_path: Path) -> None:
    site = Site(tmp_path)
    files_of(site).save(guest("left"))
    there = files_of(site, OTHER)
    for uuid in ("left", "of another host"):
        there.expect(guest(uuid))
    site.switch_off(HOST)
    assert there.all_incoming() == ["of another host"]


def test_what_is_just_being_written_is_no_hit_yet(tmp_path: Path) -> None:
    site = Site(tmp_path)
    site.hits_file.write_text('{"point": "a"}\n{"point": "b"')
    assert site.hits() == [{"point": "a"}]

"""``causeway manage libvirt``: nova-manage's ways and exit statuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.model.machine_type import RECORDED
from causeway.model.states import VmState
from causeway.store.cell import instances
from tests.functional.processes.test_consistency import Site

NOBODY = "11111111-0000-0000-0000-000000000000"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path)
    yield made
    made.close()


def become(site: Site, uuid: str, **changes: Any) -> None:
    instances.update(site.cells["cell1"], uuid, **changes)


def recorded(site: Site, uuid: str) -> str | None:
    return instances.get(site.cells["cell1"], uuid, with_tags=False).system_metadata.get(RECORDED)


def test_what_is_recorded_is_shown(site: Site) -> None:
    uuid = site.server(system_metadata={RECORDED: "pc-q35-7.2"})
    shown = site.manage("libvirt", "get-machine-type", uuid)
    assert (shown.exit_code, shown.output) == (0, "pc-q35-7.2\n")
    assert site.manage("libvirt", "get-machine-type", site.server()).exit_code == 3
    assert site.manage("libvirt", "get-machine-type", NOBODY).exit_code == 2


def test_the_machine_type_of_a_server_that_is_off_is_changed(site: Site) -> None:
    uuid = site.server(system_metadata={RECORDED: "pc-i440fx-6.2", "boot_roles": "member"})

    def update(machine_type: str, *more: str) -> int:
        return site.manage("libvirt", "update-machine-type", uuid, machine_type, *more).exit_code

    assert update("pc-i440fx-7.2") == 3 and recorded(site, uuid) == "pc-i440fx-6.2"
    become(site, uuid, vm_state=VmState.STOPPED)
    assert update("voodoo") == 5
    assert update("q35") == 4 and recorded(site, uuid) == "pc-i440fx-6.2"
    assert update("pc-i440fx-7.2") == 0 and recorded(site, uuid) == "pc-i440fx-7.2"
    assert update("pc") == 0
    assert update("q35", "--force") == 0 and recorded(site, uuid) == "q35"
    assert instances.get(site.cells["cell1"], uuid, with_tags=False).system_metadata["boot_roles"] == "member"
    assert site.manage("libvirt", "update-machine-type", NOBODY, "q35").exit_code == 2


def test_servers_without_are_listed(site: Site) -> None:
    site.server(system_metadata={RECORDED: "pc"})
    assert site.manage("libvirt", "list-unset-machine-type").exit_code == 0
    here, there = site.server(), site.server("cell2")
    reported = site.manage("libvirt", "list-unset-machine-type")
    assert (reported.exit_code, sorted(reported.output.split())) == (3, sorted([here, there]))
    of_cell = site.manage("libvirt", "list-unset-machine-type", "--cell-uuid", site.uuids["cell2"])
    assert (of_cell.exit_code, of_cell.output.split()) == (3, [there])
    assert site.manage("libvirt", "list-unset-machine-type", "--cell-uuid", NOBODY).exit_code == 2

"""A host is handed back in an order in which no change is lost, whenever somebody dies or changes something."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from causeway import errors
from causeway.adopt.hand_back import HandedBack
from causeway.adopt.hand_back import hosts as handing_back
from causeway.adopt.hosts.taking import AdoptServices
from causeway.adopt.nova import NovaCloud, tables
from causeway.model.adoption import AdoptedHost, HostState
from causeway.model.states import VmState
from causeway.store.api import adopted_hosts
from causeway.store.cell import instances
from tests.unit.adopt.causeway_databases import UUIDS, OurDatabases, our_databases
from tests.unit.adopt.nova_cloud import NovaOnDisk
from tests.unit.adopt.test_hand_back import ACTIVE, import_from, rows

HOST = "cell1-host1"


@dataclass
class Computes:
    """Stand for the queue of a cell's hosts. ``meanwhile``: called when a host is released."""

    released: list[str] = field(default_factory=list)
    meanwhile: Callable[[], None] = lambda: None

    def release(self, _context: Any, host: str) -> None:
        self.meanwhile()
        self.released.append(host)


@dataclass
class Cloud:
    nova: NovaOnDisk
    ours: OurDatabases
    computes: Computes = field(default_factory=Computes)

    @property
    def services(self) -> AdoptServices:
        return AdoptServices(self.ours.cells, lambda _cell: self.computes)  # type: ignore[arg-type,return-value]

    @property
    def state(self) -> HostState:
        adopted = adopted_hosts.find(self.ours.api, HOST)
        assert adopted is not None
        return adopted.state

    @property
    def name_in_nova(self) -> str:
        return str(rows(self.nova, "cell1", tables.INSTANCES, ACTIVE, "uuid")[0]["display_name"])

    def change(self, **changes: Any) -> None:
        instances.update(self.ours.of_cell("cell1"), ACTIVE, **changes)

    def hand_back(self, hosts: Sequence[str] = (HOST,)) -> HandedBack:
        with NovaCloud([self.nova.conf], writable=True) as nova:
            return handing_back.hand_back(self.services, nova, handing_back.chosen(self.services, hosts, None))


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    nova = NovaOnDisk(tmp_path)
    nova.execute("cell1", "UPDATE instances SET deleted = id WHERE vm_state = 'resized' OR task_state IS NOT NULL")
    with our_databases(tmp_path) as ours:
        import_from(nova, ours)
        adopted_hosts.save(ours.api, AdoptedHost(HOST, UUIDS["cell1"], HostState.TAKEN))
        yield Cloud(nova, ours)


def test_what_changes_until_the_host_is_released_is_written_too(cloud: Cloud) -> None:
    cloud.change(display_name="before")
    cloud.computes.meanwhile = lambda: cloud.change(display_name="meanwhile")
    assert cloud.hand_back().changed == [ACTIVE]
    assert (cloud.name_in_nova, cloud.computes.released, cloud.state) == ("meanwhile", [HOST], HostState.RELEASED)


def test_a_host_is_ours_until_all_is_written(cloud: Cloud) -> None:
    """The host does not answer: nothing is lost, and the command is run again."""

    def fails() -> None:
        raise errors.HostUnreachable(HOST)

    cloud.change(display_name="renamed")
    cloud.computes.meanwhile = fails
    with pytest.raises(errors.HostUnreachable):
        cloud.hand_back()
    assert (cloud.name_in_nova, cloud.state) == ("renamed", HostState.TAKEN)
    cloud.computes.meanwhile = lambda: None
    cloud.hand_back()
    assert cloud.state is HostState.RELEASED


def test_hosts_that_are_handed_back_together_can_be_named_again_when_that_died(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it noted them: one that was noted already would be refused as not Causeway's."""
    both, save = [HOST, "cell1-host2"], adopted_hosts.save_in
    adopted_hosts.save(cloud.ours.api, AdoptedHost(both[1], UUIDS["cell1"], HostState.TAKEN))

    def die(connection: sa.Connection, noted: Iterable[AdoptedHost]) -> None:
        for adopted in noted:
            if adopted.host == both[1]:
                raise SystemExit
            save(connection, [adopted])

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(adopted_hosts, "save_in", die)
        cloud.hand_back(both)
    cloud.hand_back(both)
    assert {each.host: each.state for each in adopted_hosts.all_hosts(cloud.ours.api)}.items() >= dict.fromkeys(
        both, HostState.RELEASED
    ).items()


def test_a_host_that_was_handed_back_is_not_written_over_again(cloud: Cloud) -> None:
    """Nova's records are true again, whatever ours say."""
    cloud.hand_back()
    cloud.nova.execute("cell1", f"UPDATE instances SET display_name = 'by nova' WHERE uuid = '{ACTIVE}'")
    with pytest.raises(errors.Conflict, match="Not Causeway's"):
        cloud.hand_back()
    assert cloud.name_in_nova == "by nova"


def test_what_is_unsettled_is_named_for_the_named_hosts_only(cloud: Cloud) -> None:
    cloud.change(vm_state=VmState.RESIZED)
    with NovaCloud([cloud.nova.conf]) as nova:
        assert [each.uuid for each in handing_back.unsettled(cloud.services, nova, [HOST])] == [ACTIVE]
        assert handing_back.unsettled(cloud.services, nova, ["cell1-host2"]) == []


def test_a_difference_is_only_said(cloud: Cloud) -> None:
    cloud.change(display_name="renamed")
    before = cloud.nova.content()
    with NovaCloud([cloud.nova.conf]) as nova:
        assert handing_back.difference(cloud.services, nova).changed == [ACTIVE]
    assert cloud.nova.content() == before

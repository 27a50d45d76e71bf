"""The cloud is Causeway's when nothing remains; from then on Nova's records are old."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from causeway import errors
from causeway.adopt import finishing
from causeway.adopt.finishing import Remaining
from causeway.adopt.hand_back import HandBack
from causeway.adopt.importing import ImportReport, LeftOut
from causeway.adopt.nova import NovaCloud
from causeway.clients.catalog import Endpoint
from causeway.model.adoption import AdoptedHost, HostState
from causeway.store.api import adopted_hosts, adoptions
from causeway.store.api import cells as cell_records
from causeway.store.cell import instances
from causeway.store.database import utcnow
from tests.unit.adopt.causeway_databases import UUIDS, OurDatabases, our_databases
from tests.unit.adopt.nova_cloud import NovaOnDisk
from tests.unit.adopt.test_hand_back import HOSTS, import_from
from tests.unit.adopt.test_import import by_name

API = "https://compute.example.org:8774"
OURS = [Endpoint("public", "one", f"{API}/v2.1"), Endpoint("internal", "one", f"{API}/v2.1/")]


@pytest.fixture
def nova(tmp_path: Path) -> NovaOnDisk:
    return NovaOnDisk(tmp_path)


@pytest.fixture
def ours(nova: NovaOnDisk, tmp_path: Path) -> Iterator[OurDatabases]:
    with our_databases(tmp_path) as made:
        import_from(nova, made)
        yield made


def take(ours: OurDatabases, *hosts: str) -> None:
    for host in hosts:
        adopted_hosts.save(ours.api, AdoptedHost(host, UUIDS[host.partition("-")[0]], HostState.TAKEN))


def remaining(ours: OurDatabases, report: ImportReport, endpoints: list[Endpoint], *without: str) -> Remaining:
    return finishing.remaining(ours.cells, report, endpoints, API, without)


def test_every_host_that_was_imported_is_known(ours: OurDatabases) -> None:
    assert {each.host: each.state for each in adopted_hosts.all_hosts(ours.api)} == dict.fromkeys(
        HOSTS, HostState.IMPORTED
    )


def test_hosts_that_are_not_taken_remain_unless_they_stay_novas(ours: OurDatabases) -> None:
    take(ours, "cell1-host1", "cell1-host2", "cell2-host1")
    assert remaining(ours, ImportReport(), OURS).hosts == ["cell2-host2"]
    assert remaining(ours, ImportReport(), OURS, "cell2-host2").is_empty


def test_servers_that_were_left_out_and_other_endpoints_remain(ours: OurDatabases) -> None:
    take(ours, *HOSTS)
    report = ImportReport(
        left_out=[LeftOut("server", "u1", "web", "its task runs"), LeftOut("flavor", "f", "f", "taken")]
    )
    left = remaining(ours, report, [*OURS, Endpoint("admin", "two", "http://nova:8774/v2.1")])
    assert left.left_out == ["server u1 (web): its task runs"]
    assert left.endpoints == ["admin of two: http://nova:8774/v2.1"]


def test_only_cells_of_novas_that_are_disabled_are_enabled(ours: OurDatabases) -> None:
    ours.cells.refresh()
    cell1 = ours.cells.mapping(UUIDS["cell1"])
    cell_records.save_cell(ours.api, replace(cell1, disabled=True))
    ours.cells.refresh()
    assert finishing.enable_cells(ours.cells, list(UUIDS.values())) == ["cell1"]
    assert not any(cell.disabled for cell in ours.cells.mappings())


def test_an_import_is_refused_from_then_on(ours: OurDatabases, nova: NovaOnDisk) -> None:
    adoptions.note_finished(ours.api)
    with pytest.raises(errors.Conflict, match="Nova's records are old"):
        import_from(nova, ours)
    adoptions.note_unfinished(ours.api)
    import_from(nova, ours)


def test_servers_without_a_host_that_nova_changed_as_well_are_handed_back_only_then(
    ours: OurDatabases, nova: NovaOnDisk
) -> None:
    instances.update(ours.of_cell("cell0"), by_name("nohost"), display_name="renamed")
    later = utcnow() + timedelta(minutes=1)
    nova.execute("cell0", f"UPDATE instances SET updated_at = '{later}' WHERE uuid = '{by_name('nohost')}'")

    def changed() -> list[str]:
        with NovaCloud([nova.conf], writable=True) as cloud:
            return HandBack(cloud, ours.api, ours.cells, frozenset()).run().changed

    assert changed() == []
    adoptions.note_finished(ours.api)
    assert changed() == [by_name("nohost")]


def test_after_the_end_for_good_nothing_can_be_handed_back(ours: OurDatabases) -> None:
    take(ours, *HOSTS)
    adoptions.note_finished(ours.api)
    finishing.end_for_good(ours.api)
    assert adopted_hosts.owned(ours.api) == set()
    assert adoptions.counts(ours.api) == {}

"""A cloud of the real Nova is taken over while its guests run, one host at first, which Nova gets again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.integration.adopt import outside
from tests.integration.adopt.adopted_cloud import AdoptedCloud, adopted_cloud
from tests.integration.adopt.answers import pause_and_unpause, shown
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.population import Population

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def adopted(cloud: NovaCloud, population: Population) -> Iterator[AdoptedCloud]:  # noqa: ARG001
    with adopted_cloud(cloud) as adopted:
        yield adopted


def test_every_server_is_shown_as_nova_shows_it(
    cloud: NovaCloud, population: Population, adopted: AdoptedCloud
) -> None:
    report = adopted.import_records()
    assert report["left_out"] == []
    with closing(cloud.nova.connection()) as theirs:
        for name, uuid in population.servers.items():
            assert shown(adopted.admin, uuid) == shown(theirs, uuid), name


def test_an_import_that_is_repeated_writes_nothing(adopted: AdoptedCloud) -> None:
    adopted.import_records()
    before = {name: outside.checksums(url) for name, url in adopted.databases.items()}
    assert adopted.import_records()["unchanged"]
    # Conductors and schedulers report all the time.
    for name, url in adopted.databases.items():
        changed = {table for table, number in outside.checksums(url).items() if before[name][table] != number}
        assert changed <= {"services"}, name


def test_what_nova_has_on_its_hosts_is_what_was_recorded(cloud: NovaCloud, adopted: AdoptedCloud) -> None:
    adopted.import_records()
    before = outside.guests(cloud)
    assert [finding for finding in adopted.look(*cloud.nova.hosts) if finding["blocks"]] == []
    outside.check_same_runs(before, outside.guests(cloud))


def test_one_host_is_taken_and_novas_again_while_nova_serves_the_others(
    cloud: NovaCloud, population: Population, adopted: AdoptedCloud
) -> None:
    uuid, elsewhere = population.servers["active"], population.servers["bootvol"]
    before = outside.guests(cloud)
    host = outside.guest_of(cloud, uuid).host
    adopted.take(host)
    outside.check_same_runs(before, outside.guests(cloud))
    assert not cloud.nova.runs_compute(host)

    pause_and_unpause(adopted.admin, uuid)
    output = adopted.admin.compute.get_server_console_output(uuid, length=3)["output"]
    assert "TICK n=" in output
    with closing(cloud.nova.connection()) as theirs:
        pause_and_unpause(theirs, elsewhere)
    adopted.hand_back(host)
    with closing(cloud.nova.connection()) as theirs:
        pause_and_unpause(theirs, uuid)
    outside.check_same_runs(before, outside.guests(cloud))
    for each in (uuid, elsewhere):
        outside.await_tick(cloud, each, outside.ticks(cloud, each)[-1].number)
        outside.check_ticks(cloud, each)

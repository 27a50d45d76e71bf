"""docs/adopting.md as it is written: from "we run Nova" to "we run Causeway", and back, while the same guests run.

Not tried here: units in a real systemd, its `StateDirectory`, the role for Ansible, metadata agents and the console proxy (the
lab has none), a machine that starts anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from tests.integration.adopt import outside
from tests.integration.adopt.adopted_cloud import AdoptedCloud, new_cloud
from tests.integration.adopt.answers import pause_and_unpause
from tests.integration.adopt.nova_cloud import NovaCloud
from tests.integration.adopt.page import TypedPage
from tests.integration.adopt.population import Population

pytestmark = pytest.mark.timeout(1800)

CHECK, BESIDE, IMPORT, PREPARED = "Before: the check", "Causeway beside Nova", "Import", "Hosts are prepared"
CANARY, FREEZE, WAVES, FINISH, BACK = "A canary", "Freeze", "All hosts in waves", "Finish", "The way back"


@pytest.fixture
def adopted(cloud: NovaCloud, population: Population) -> Iterator[AdoptedCloud]:  # noqa: ARG001
    """Nothing of it runs."""
    policies = cloud.nova.config_of("nova").with_name("policy.d")
    policies.mkdir(exist_ok=True)
    with new_cloud(cloud, "page") as adopted:
        try:
            yield adopted
        finally:
            (policies / "causeway-freeze.yaml").unlink(missing_ok=True)


def test_the_page_is_right_from_nova_to_causeway_and_back(
    cloud: NovaCloud, population: Population, adopted: AdoptedCloud
) -> None:
    nova, page = cloud.nova, TypedPage(cloud, adopted)
    before = outside.guests(cloud)
    uuid, elsewhere = population.servers["active"], population.servers["bootvol"]
    canary = outside.guest_of(cloud, uuid).host
    names = {"compute1": canary}

    page.type(CHECK)
    for cell in nova.cells:
        page.type(BESIDE, names=page.of_cell(cell))
    adopted.start_control_plane()
    page.type_with("--config-file /etc/causeway/conductor.conf", CHECK)
    assert "cell_missing" not in page.said
    page.type(IMPORT)
    at_all(nova.hosts, lambda host: prepare(page, adopted, host))
    page.type(PREPARED, 2, names=names)
    assert all(host in page.said for host in nova.hosts)
    outside.check_same_runs(before, outside.guests(cloud))

    with closing(nova.connection()) as theirs:
        # As the page says: nobody changes them in Nova while they are Causeway's.
        on_canary = [guest.uuid for guest in before if guest.host == canary]
        for each in on_canary:
            theirs.compute.lock_server(each)
        page.type(CANARY, 0, host=canary)
        page.type(CANARY, 1, names=names)
        assert page.is_fenced(canary)
        for each in on_canary:
            adopted.admin.compute.unlock_server(each)
        pause_and_unpause(adopted.admin, uuid)
        pause_and_unpause(theirs, elsewhere)
        page.type(BACK, 0, names=names)
        start_novas(page, cloud, canary)
        pause_and_unpause(theirs, uuid)
    outside.check_same_runs(before, outside.guests(cloud))

    page.type(FREEZE)
    # The second time by the cell, as the page says in a sentence.
    for hosts, words in ((nova.cells["cell2"], nova.cells["cell2"]), (nova.cells["cell1"], ("--cell", "cell1"))):
        at_all(hosts, lambda host: page.type(CANARY, 0, host=host))
        page.type(WAVES, names=dict(zip(("compute2", "compute3"), words, strict=True)))
    assert page.said.count("taken") == len(nova.hosts)
    adopted.point_catalog(f"{adopted.api_url}/v2.1")
    try:
        page.type(FINISH)
        page.type(IMPORT, status=1)
        pause_and_unpause(adopted.member, uuid)
        outside.check_same_runs(before, outside.guests(cloud))

        page.type(BACK, 3)
        start_novas(page, cloud, *nova.hosts)
    finally:
        adopted.point_catalog(nova.url)
    page.type(BACK, 4)
    assert page.untyped == []
    with closing(nova.connection("demo")) as theirs:
        for each in (uuid, elsewhere):
            pause_and_unpause(theirs, each)
            outside.await_tick(cloud, each, outside.ticks(cloud, each)[-1].number)
            outside.check_ticks(cloud, each)
    outside.check_same_runs(before, outside.guests(cloud))


def at_all(hosts: Iterable[str], act: Callable[[str], object]) -> None:
    """At the same time: the time of starts is mostly spent on waiting."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(act, hosts))


def prepare(page: TypedPage, adopted: AdoptedCloud, host: str) -> None:
    page.type(PREPARED, 0, host=host)
    adopted.give_account(host)
    page.type(PREPARED, 1, host=host)


def start_novas(page: TypedPage, cloud: NovaCloud, *hosts: str) -> None:
    """They have reported when this returns: a nova-compute that starts breaks off what its servers had begun."""
    before = cloud.nova.reports(*hosts)
    for host in hosts:
        page.type(BACK, 1, names={"compute1": host, "/": f"nova-{cloud.nova.hosts[host]}"})
        page.type(BACK, 2, host=host)
    cloud.nova.await_reports(before)

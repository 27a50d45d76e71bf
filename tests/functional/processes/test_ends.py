"""A service that is asked to end ends by itself, whichever neighbour is gone, or frozen."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from causeway.cli.processes import ENDS_WITHIN
from tests.faults.clouds.processes_site import PLACEMENT, ProcessesSite
from tests.functional.processes.own_process import Process
from tests.functional.processes.rabbit import why_not

pytestmark = [pytest.mark.timeout(900), pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]

DEVCLOUD = "devcloud"
ROLES = ("conductor1", "cell1-conductor", "scheduler", "cell1-host1")

Break = Callable[[ProcessesSite], Callable[[], object]]


def gone(name: str) -> Break:
    """kill -9. Returns what starts it again."""

    def act(site: ProcessesSite) -> Callable[[], object]:
        site.processes[name].kill()
        return lambda: site.start_again(name)

    return act


def frozen(name: str) -> Break:
    def act(site: ProcessesSite) -> Callable[[], object]:
        site.processes[name].freeze()
        return site.processes[name].thaw

    return act


def no_queue(site: ProcessesSite) -> Callable[[], object]:
    site.broker.kill()
    return site.broker.start


def frozen_queue(site: ProcessesSite) -> Callable[[], object]:
    site.broker.freeze()
    return site.broker.thaw


def no_database(site: ProcessesSite) -> Callable[[], object]:
    site.database.kill()
    return site.database.start


def frozen_database(site: ProcessesSite) -> Callable[[], object]:
    site.database.freeze()
    return site.database.thaw


BREAKS: dict[str, Break] = {
    "RabbitMQ is gone": no_queue,
    "RabbitMQ is frozen": frozen_queue,
    "the databases are gone": no_database,
    "the databases are frozen": frozen_database,
    "Placement is gone": gone(PLACEMENT),
    "Placement is frozen": frozen(PLACEMENT),
    "all other services are gone": gone(DEVCLOUD),
    "all other services are frozen": frozen(DEVCLOUD),
}


@pytest.fixture(scope="module")
def site() -> Iterator[ProcessesSite]:
    with (
        tempfile.TemporaryDirectory(prefix="causeway-ends-", ignore_cleanup_errors=True) as folder,
        ProcessesSite(Path(folder)) as site,
    ):
        yield site


@pytest.mark.parametrize("name", BREAKS)
def test_every_role_ends_by_itself(site: ProcessesSite, name: str) -> None:
    _boot(site)
    repair = BREAKS[name](site)
    ending = {role: site.processes[role] for role in ROLES}
    try:
        for process in ending.values():
            process.terminate()
        statuses = {role: _wait_ended(role, process) for role, process in ending.items()}
    finally:
        repair()
    for role in ROLES:
        site.deployment.restart(role)
    for role in ROLES:
        site.processes[role].wait_ready()
    assert statuses == dict.fromkeys(ROLES, 0)


def _boot(site: ProcessesSite) -> None:
    """So that everybody has connections of each kind."""
    site.await_api()
    made = site.member.compute.create_server(
        name="before", flavor_id="gen1.small", image_id=site.image_id, networks=[{"uuid": site.network_id}]
    )
    site.member.compute.wait_for_server(made, wait=120)
    site.member.compute.delete_server(made)
    site.member.compute.wait_for_delete(made, wait=120)


def _wait_ended(role: str, process: Process) -> int:
    kind = {"conductor1": "conductor", "cell1-conductor": "cell-conductor", "scheduler": role}.get(role, "compute")
    # The promise counts from the signal, and a busy machine is slow to notice.
    return process.wait_ended(ENDS_WITHIN[kind] + 30)

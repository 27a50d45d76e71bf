"""A deployment of ours beside the real services: every role a process, on MariaDB and on PostgreSQL."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.functional.processes.consumer import VERSIONED
from tests.functional.processes.deployment import OPTIONS, Deployment
from tests.functional.processes.rabbit import rabbit, why_not
from tests.integration.database_servers import database_server
from tests.integration.real_services import faults_of_parts, killed_in_requests, suite_beside
from tests.integration.real_services.beside import Surround, deployed
from tests.integration.real_services.ceph import Ceph, missing
from tests.integration.real_services.machine import VENV
from tests.integration.real_services.rbd_site import RbdSite, clean_site
from tests.integration.real_services.services import RealServices
from tests.integration.real_services.sites import Site, site_with_services

# Seconds. Users' tokens end in the middle of moves: whatever takes long continues with the services' own.
TOKEN_LIFE = 60


class Cloud(Deployment):
    """With what is known of the services around it in ``services``."""

    services: RealServices


def why_not_here() -> str | None:
    """Why nothing of this can be run here; None if it can."""
    if not (VENV / "bin/neutron-rpc-server").exists():
        return "the real services are not installed: make integration does that"
    if os.geteuid() != 0:
        return "the volume service mounts shares: it needs root"
    return why_not()


@contextmanager
def killed_site(kind: str) -> Iterator[Site]:
    """A deployment beside services that may be killed. ``kind``: of all databases."""
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="causeway-killed-", ignore_cleanup_errors=True) as folder,
        site_with_services(Path(folder), kind) as site,
    ):
        yield site


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if faults_of_parts.results:
        terminalreporter.write(faults_of_parts.table())
    if killed_in_requests.results:
        terminalreporter.write(killed_in_requests.table())
    for which, outcome in suite_beside.outcomes.items():
        terminalreporter.write(f"\nThe functional suite, {which}: {outcome}\n")


# The main job comes first, what takes long last.
ORDER = (
    "test_main_job",
    "test_notifications_beside",
    "test_real_guests",
    "test_guests_kept_running",
    "test_online_upgrade",
    "test_faults_of_parts",
    "test_killed_in_requests",
    "test_killed_on_mariadb",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    for item in here:
        item.add_marker(pytest.mark.integration)
    if len(here) == len(items):
        items.sort(key=lambda item: ORDER.index(item.path.stem) if item.path.stem in ORDER else len(ORDER))


@pytest.fixture(scope="module")
def ceph() -> Iterator[Ceph]:
    """A cluster at 127.0.0.1, which only this machine reaches."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with tempfile.TemporaryDirectory(prefix="causeway-ceph-", ignore_cleanup_errors=True) as folder:
        ceph = Ceph(Path(folder), "127.0.0.1")
        try:
            ceph.start()
            yield ceph
        finally:
            ceph.stop()


@pytest.fixture(params=["bindings", "programs"])
def site(request: pytest.FixtureRequest, ceph: Ceph) -> Iterator[RbdSite]:
    with clean_site(ceph, programs=request.param == "programs") as site:
        yield site


@pytest.fixture
def bound(ceph: Ceph) -> Iterator[RbdSite]:
    """For what does not depend on bindings or programs."""
    with clean_site(ceph) as site:
        yield site


@pytest.fixture(scope="module", params=["mariadb", "postgresql"])
def running(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    reason = why_not_here()
    if reason is not None:
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="causeway-integration-", ignore_cleanup_errors=True) as folder,
        database_server(request.param) as new_database,
        rabbit(Path(folder) / "rabbit") as queue,
    ):

        def build(surround: Surround) -> Cloud:
            return Cloud(
                Path(folder),
                queue,
                cells={"cell1": ["host1", "host3"], "cell2": ["host2", "host4"]},
                options={**OPTIONS, **VERSIONED},
                new_database=new_database,
                surround=surround,
                cell_conductors=True,
            )

        with deployed(build, new_database=new_database, queue=queue, token_seconds=TOKEN_LIFE) as (cloud, services):
            cloud.services = services
            yield cloud


@pytest.fixture
def cloud(running: Cloud) -> Iterator[Cloud]:
    yield running
    running.delete_servers()

"""The cloud that the functional suite runs on by URL, beside the real services.

``python -m tests.integration.real_services.suite_beside DIRECTORY mariadb`` keeps one until a key is pressed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.functional.processes.rabbit import rabbit
from tests.functional.processes.suite_cloud import Outcome, SuiteDeployment
from tests.integration.database_servers import database_server
from tests.integration.real_services.beside import Surround, deployed
from tests.integration.real_services.services import RealServices

# A test has ports, volumes and images left that are on their way out while the next one makes its own.
QUOTA = 100
#: which, and on which databases -> what became of it in this run
outcomes: dict[str, Outcome] = {}


@contextmanager
def suite_cloud(directory: Path, kind: str) -> Iterator[Path]:
    """Its cloud.yaml. ``kind``: of all databases."""
    with database_server(kind) as new_database, rabbit(directory / "rabbit") as queue:

        def build(surround: Surround) -> SuiteDeployment:
            return SuiteDeployment(directory, queue, new_database=new_database, surround=surround)

        with deployed(build, new_database=new_database, queue=queue, prepare=_raise_quotas):
            yield directory / "cloud.yaml"


def _raise_quotas(services: RealServices) -> None:
    with services.connection() as admin:
        demo = admin.identity.find_project("demo")
        admin.set_volume_quotas(demo.id, volumes=QUOTA, snapshots=QUOTA)


if __name__ == "__main__":
    where = Path(sys.argv[1]).resolve()
    where.mkdir(parents=True)
    with suite_cloud(where, sys.argv[2]) as described:
        print(f"ready: pytest --cloud {described} tests/functional/servers tests/functional/known_bugs", flush=True)
        sys.stdin.readline()

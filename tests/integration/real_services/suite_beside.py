"""The cloud that the functional suite runs on by URL, beside the real services.

``python -m tests.integration.real_services.suite_beside DIRECTORY mariadb`` keeps one until a key is pressed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.functional.processes.deployment import Deployment
from tests.functional.processes.rabbit import rabbit
from tests.functional.processes.suite_cloud import Outcome, SuiteDeployment
from tests.integration.database_servers import database_server
from tests.integration.real_services.services import RealServices

from causeway.embedded.settings import POLICY

# A test has ports, volumes and images left that are on their way out while the next one makes its own.
QUOTA = 100
#: which, and on which databases -> what became of it in this run
outcomes: dict[str, Outcome] = {}


@contextmanager
def suite_cloud(directory: Path, kind: str) -> Iterator[Path]:
    """Its cloud.yaml. ``kind``: of all databases."""
    with database_server(kind) as new_database, rabbit(directory / "rabbit") as queue:

        def surround(_cloud: Deployment) -> None:
            services.start()
            policy = directory / "policy.yaml"
            policy.write_text(POLICY)
            services.write_client_files(directory, policy)
            with services.connection() as admin:
                demo = admin.identity.find_project("demo")
                admin.set_volume_quotas(demo.id, volumes=QUOTA, snapshots=QUOTA)

        cloud = SuiteDeployment(directory, queue, new_database=new_database, surround=surround)
        services = RealServices(
            directory / "services",
            new_database=new_database,
            queue=f"{queue}/services",
            compute_url=f"{cloud.api_url}/v2.1",
            hosts=cloud.hosts,
        )
        try:
            cloud.start()
            yield directory / "cloud.yaml"
        finally:
            try:
                cloud.kill()
            finally:
                services.stop()


if __name__ == "__main__":
    where = Path(sys.argv[1]).resolve()
    where.mkdir(parents=True)
    with suite_cloud(where, sys.argv[2]) as described:
        print(f"ready: pytest --cloud {described} tests/functional/moves tests/functional/known_bugs", flush=True)
        sys.stdin.readline()

"""The cloud that the functional suite runs on by URL, beside the real services.

``python -m tests.integration.real_services.suite_beside DIRECTORY mariadb [SHAPE]`` keeps one until a key is pressed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.functional.processes.rabbit import rabbit
from tests.functional.processes.suite_cloud import SuiteDeployment
from tests.functional.processes.suite_runs import Outcome, Outcomes
from tests.functional.processes.suite_shapes import SHAPES, Shape
from tests.integration.database_servers import database_server
from tests.integration.real_services.beside import Surround, deployed
from tests.integration.real_services.services import RealServices
from tests.of_one_process import SUITE

# A test has ports, volumes and images left that are on their way out while the next one makes its own.
QUOTA = 100
#: which, and on which databases -> what became of it in this run
outcomes: dict[str, Outcome | Outcomes] = {}


@contextmanager
def suite_cloud(directory: Path, kind: str, shape: Shape) -> Iterator[Path]:
    """Its cloud.yaml. ``directory`` is made; ``kind``: of all databases."""
    directory.mkdir()
    with database_server(kind) as new_database, rabbit(directory / "rabbit") as queue:

        def build(surround: Surround) -> SuiteDeployment:
            return SuiteDeployment(directory, queue, new_database=new_database, surround=surround, **shape.arguments())

        with deployed(build, new_database=new_database, queue=queue, prepare=_raise_quotas):
            yield directory / "cloud.yaml"


def _raise_quotas(services: RealServices) -> None:
    with services.connection() as admin:
        demo = admin.identity.find_project("demo")
        admin.set_volume_quotas(demo.id, volumes=QUOTA, snapshots=QUOTA)


if __name__ == "__main__":
    where, kind_of_databases, *named = Path(sys.argv[1]).resolve(), *sys.argv[2:]
    wanted = next(shape for shape in SHAPES if not named or shape.name == named[0])
    with suite_cloud(where, kind_of_databases, wanted) as described:
        print(f"ready: pytest --cloud {described} {' '.join(SUITE)}", flush=True)
        sys.stdin.readline()

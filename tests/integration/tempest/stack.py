"""The deployment that Tempest runs against: every role of ours a process, on simulated hosts, beside the real services."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from causeway.conf.scheduler import FILTERS
from tests.functional.processes.deployment import Deployment
from tests.functional.processes.rabbit import rabbit
from tests.integration.database_servers import database_server
from tests.integration.real_services.beside import Surround, deployed
from tests.integration.real_services.services import RealServices
from tests.integration.tempest import consoles
from tests.ports import free_port

# Two more than by default: Tempest has tests for them.
ENABLED_FILTERS = (*FILTERS, "SameHostFilter", "DifferentHostFilter")
OPTIONS = {"filter_scheduler": {"enabled_filters": ",".join(ENABLED_FILTERS)}}
DEFAULTS = {"report_interval": 2, "shelved_offload_time": 0}
CELLS = {"cell1": ["host1", "host3"], "cell2": ["host2", "host4"]}
ONE_CELL = {"cell1": ["host1", "host2"]}


class Cloud(Deployment):
    """With what is known of the services around it in ``services``, and a proxy of consoles."""

    services: RealServices
    console_port: int

    def start(self) -> None:
        super().start()
        consoles.start(self, self.console_port)

    def stop(self) -> None:
        consoles.stop(self)
        super().stop()


@contextmanager
def stack(
    directory: Path,
    database: str,
    cells: Mapping[str, Sequence[str]],
    options: Mapping[str, Mapping[str, Any]] = OPTIONS,
) -> Iterator[Cloud]:
    """``database`` is postgresql or mariadb. Everything is below ``directory``, and has ended afterwards."""
    with database_server(database) as new_database, rabbit(directory / "rabbit") as queue:

        def build(surround: Surround) -> Cloud:
            cloud = Cloud(
                directory,
                queue,
                cells=cells,
                options={**options, **consoles.options(port), "DEFAULT": DEFAULTS},
                new_database=new_database,
                surround=surround,
                cell_conductors=True,
            )
            cloud.console_port = port
            return cloud

        port = free_port()

        with deployed(build, new_database=new_database, queue=queue) as (cloud, services):
            cloud.services = services
            yield cloud

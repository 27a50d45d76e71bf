"""What commands about hosts need: databases, queues, and Nova's databases if they are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.cli import extras, processes

if TYPE_CHECKING:
    from causeway.adopt.hosts.taking import AdoptServices


@contextmanager
def adopt_services(config_files: Sequence[Path], nova_files: Sequence[Path]) -> Iterator[AdoptServices]:
    """The databases and queues of the configuration. Failures become errors of the command."""
    extras.require("database", "Hosts that are taken over from Nova")
    from causeway.adopt.hosts import nova_services
    from causeway.adopt.hosts.taking import AdoptServices
    from causeway.adopt.nova import NovaCloud
    from causeway.cli import databases
    from causeway.clients.placement import remote_placement
    from causeway.rpc.adopting import AdoptingClient

    conf = processes.configuration(config_files)
    with processes.failures_reported(), ExitStack() as cleanup:
        _api, cells = databases.api_and_cells(conf, cleanup)
        transports = processes.transports(conf, cleanup)
        yield AdoptServices(
            cells,
            lambda cell: AdoptingClient(transports.get(cell.transport_url)),
            placement=remote_placement(conf) if conf.placement.auth_type else None,
            nova=nova_services.of_cloud(cleanup.enter_context(NovaCloud(nova_files))) if nova_files else None,
        )


__all__ = ["adopt_services"]

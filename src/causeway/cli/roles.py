"""``causeway api|metadata|conductor|scheduler|compute``: a role in a process of its own, on what its configuration names."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

import click
from oslo_config import cfg
from oslo_log import log

from causeway import roles
from causeway.cli import processes
from causeway.cli.web_processes import ApiProcesses, MetadataProcesses
from causeway.conf import PROJECT
from causeway.conf.conductor import CELL, SUPER
from causeway.metadata.callers import check_options
from causeway.model.host import CellMapping
from causeway.operations.metrics import OperationsCollector
from causeway.policy import Enforcer
from causeway.store.database import Database
from causeway.virt.driver import Driver
from causeway.virt.simulated import SimulatedDriver
from causeway.virt.simulated.hardware import from_options
from causeway.without_effect import without_effect

LOG = logging.getLogger(__name__)


@click.command()
@processes.config_file_option
@click.option("--bind", default="127.0.0.1:8774", show_default=True, help="Address and port, or unix:PATH.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help="Processes.")
@click.option("--threads", default=16, show_default=True, type=click.IntRange(1), help="Threads of each process.")
def api(config_files: tuple[Path, ...], bind: str, workers: int, threads: int) -> None:
    """Run the Compute API in processes of its own (gunicorn).

    Needs [api_database] connection, transport_url, [keystone_authtoken], [placement] and credentials for the services
    around. SIGTERM finishes the requests under way; SIGHUP starts the workers anew.
    """
    conf = processes.configuration(config_files)
    processes.check_queue(conf)
    processes.check_placement(conf)
    with processes.failures_reported():
        processes.api_database(conf).close()
        # Here, because gunicorn would restart failing workers again and again.
        Enforcer(conf)
    log.setup(conf, PROJECT)
    notes = without_effect(conf, with_policy=True)
    ApiProcesses(conf, notes, bind=bind, workers=workers, threads=threads).serve()


@click.command()
@processes.config_file_option
@click.option("--bind", default="127.0.0.1:8775", show_default=True, help="Address and port, or unix:PATH.")
@click.option("--workers", default=2, show_default=True, type=click.IntRange(1), help="Processes.")
@click.option("--threads", default=16, show_default=True, type=click.IntRange(1), help="Threads of each process.")
def metadata(config_files: tuple[Path, ...], bind: str, workers: int, threads: int) -> None:
    """Run the metadata service in processes of its own (gunicorn): what guests ask about themselves.

    Needs [api_database] connection. Behind the network service's metadata agent: [neutron] service_metadata_proxy and
    metadata_proxy_shared_secret; for guests that ask directly: credentials for the network service. Needs no queue, no Placement.
    """
    conf = processes.configuration(config_files)
    with processes.failures_reported():
        processes.api_database(conf).close()
        # Here, because gunicorn would restart failing workers again and again.
        check_options(conf)
    log.setup(conf, PROJECT)
    notes = without_effect(conf, with_policy=False)
    MetadataProcesses(conf, notes, bind=bind, workers=workers, threads=threads).serve()


@click.command()
@processes.config_file_option
def scheduler(config_files: tuple[Path, ...]) -> None:
    """Run a scheduler in a process of its own.

    Needs [api_database] connection, transport_url and [placement].
    """
    processes.serve("scheduler", config_files, _start_scheduler)


def _start_scheduler(conf: cfg.ConfigOpts, cleanup: ExitStack) -> None:
    around = processes.around(conf, cleanup)
    _database, cells = processes.databases(conf, cleanup)
    processes.expose_metrics(conf, cleanup)
    service = roles.SchedulerService(around, cells, conf.host)
    cleanup.callback(service.stop)
    service.start()


@click.command()
@processes.config_file_option
def conductor(config_files: tuple[Path, ...]) -> None:
    """Run a conductor in a process of its own.

    It drives builds and moves, and takes the reports of the cells in [conductor] cells (all). Needs [api_database] connection,
    transport_url, [placement] and credentials for the services around. Each conductor gets a `host` of its own: it names the
    owner of moves. SIGTERM finishes the steps under way; other conductors take over the moves.

    With [conductor] role = super it takes no reports. With role = cell it takes those of one cell and does nothing else: it
    needs the cell's transport_url and [database] connection, and nothing of the cloud's.
    """
    processes.serve("conductor", config_files, _start_conductor)


def _start_conductor(conf: cfg.ConfigOpts, cleanup: ExitStack) -> None:
    if conf.conductor.role == CELL:
        _start_cell_conductor(conf, cleanup)
        return
    around = processes.around(conf, cleanup)
    database, cells = processes.databases(conf, cleanup)
    chosen_cells(cells.mappings(cell0=False), conf.conductor.cells)
    reporting = [] if conf.conductor.role == SUPER else conf.conductor.cells or None
    processes.expose_metrics(conf, cleanup, [OperationsCollector(database)])
    service = roles.conductor(around, database, cells, conf.host, of_cells=reporting)
    cleanup.callback(service.stop)
    service.start()
    service.recover()


def _start_cell_conductor(conf: cfg.ConfigOpts, cleanup: ExitStack) -> None:
    if not conf.database.connection:
        raise click.ClickException("Set [database] connection to the URL of the cell's database.")
    if conf.api_database.connection:
        LOG.warning("The conductor of a cell needs no API database: take [api_database] out of its configuration")
    database = Database(conf.database.connection, "the cell", synchronous=conf.database.sqlite_synchronous)
    cleanup.callback(database.close)
    processes.expose_metrics(conf, cleanup)
    service = roles.cell_conductor(conf, processes.transports(conf, cleanup), conf.host, database, conf.transport_url)
    cleanup.callback(service.stop)
    service.start()


def chosen_cells(cells: Sequence[CellMapping], names: Sequence[str]) -> list[CellMapping]:
    """The cells with these names or uuids; all if there are no names. Raises ClickException for an unknown one."""
    unknown = [name for name in names if not any(name in (cell.name, cell.uuid) for cell in cells)]
    if unknown:
        raise click.ClickException(
            f"[conductor] cells: there is no cell {', '.join(unknown)}. See `causeway manage cell list`."
        )
    return [cell for cell in cells if not names or cell.name in names or cell.uuid in names]


@click.command()
@processes.config_file_option
def compute(config_files: tuple[Path, ...]) -> None:
    """Run the compute service of one host in a process of its own.

    Needs the transport_url of its cell, [placement] and credentials for the services around; no database. Its files are in
    STATE_PATH/hosts/HOST. Guests keep running when it ends.
    """
    processes.serve("compute", config_files, _start_compute)


def _start_compute(conf: cfg.ConfigOpts, cleanup: ExitStack) -> None:
    if conf.api_database.connection or conf.database.connection:
        LOG.warning("Computes need no database: take [api_database] and [database] out of their configuration")
    state_dir = Path(conf.state_path) / "hosts" / conf.host
    processes.expose_metrics(conf, cleanup)
    service = roles.compute(
        processes.around(conf, cleanup), conf.host, _driver(conf, state_dir), conf.transport_url, state_dir
    )
    cleanup.callback(service.stop)
    service.start()


def _driver(conf: cfg.ConfigOpts, state_dir: Path) -> Driver:
    if conf.compute_driver == "simulated":
        return SimulatedDriver(
            conf.host,
            state_dir,
            hardware=from_options(conf),
            peers_dir=state_dir.parent,
            live_network=conf.simulated.live_networks.get(conf.host, ""),
            console_address=conf.serial_console.proxyclient_address,
        )
    # Only here: libvirt's packages are an extra.
    from causeway.virt.libvirt import consoles
    from causeway.virt.libvirt.driver import LibvirtDriver
    from causeway.virt.libvirt.guest_xml import processor, smbios
    from causeway.virt.libvirt.guest_xml.machine import default_machine
    from causeway.virt.libvirt.live import live_settings

    # os-vif and os-brick read their options ([os_vif_ovs] and others) from oslo.config's own object, in the same files.
    # Options that other libraries in the process require are not needed by a compute.
    with suppress(cfg.RequiredOptError):
        cfg.CONF([], project=PROJECT, default_config_files=conf.default_config_files, default_config_dirs=[])
    return LibvirtDriver(
        conf.libvirt.connection_uri,
        conf.host,
        state_dir / "instances",
        virt_type=conf.libvirt.virt_type,
        machine=default_machine(conf.libvirt.hw_machine_type),
        serial=smbios.Serial(conf.libvirt.sysinfo_serial),
        has_tpm=conf.libvirt.swtpm_enabled,
        cpu=processor.from_options(conf),
        host_ip=conf.my_ip,
        name_template=conf.instance_name_template,
        live=live_settings.from_options(conf),
        consoles=consoles.from_options(conf),
    )

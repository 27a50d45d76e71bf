"""``causeway compute``: the compute service of a host in a process of its own. It needs no database."""

from __future__ import annotations

import logging
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import click
from oslo_config import cfg

from causeway.cli import extras, processes
from causeway.conf import PROJECT
from causeway.model.found_host import FoundHypervisor
from causeway.roles.compute import make_adopting_compute, make_compute
from causeway.virt.driver import Driver

LOG = logging.getLogger(__name__)


@click.command()
@processes.config_file_option
def compute(config_files: tuple[Path, ...]) -> None:
    """Run the compute service of one host in a process of its own.

    Needs the transport_url of its cell, [placement] and credentials for the services around; no database. Its files are in
    STATE_PATH/hosts/HOST, those of guests where instances_path says. Guests keep running when it ends.
    """
    processes.serve("compute", config_files, _start_compute)


def _start_compute(conf: cfg.ConfigOpts, cleanup: ExitStack) -> None:
    if conf.api_database.connection or conf.database.connection:
        LOG.warning("Computes need no database: take [api_database] and [database] out of their configuration")
    state_dir = state_dir_of(conf)
    # Not _base in it, which Nova has there, and from which it deletes what its own servers don't use.
    disks_dir = Path(conf.instances_path) / "causeway" if conf.instances_path else None
    processes.expose_metrics(conf, cleanup)
    around = processes.around(conf, cleanup)
    if conf.adopt.nova_state_path:
        adopting = make_adopting_compute(
            around,
            conf.host,
            partial(_driver, conf, state_dir),
            conf.transport_url,
            state_dir,
            disks_dir,
            look=partial(look, conf),
            nova_folders=nova_folders(conf),
        )
        cleanup.callback(adopting.stop)
        adopting.start()
        return
    service = make_compute(around, conf.host, _driver(conf, state_dir), conf.transport_url, state_dir, disks_dir)
    cleanup.callback(service.stop)
    service.start()


def state_dir_of(conf: cfg.ConfigOpts) -> Path:
    """Where the compute service of this host keeps its files."""
    folder: Path = Path(conf.state_path) / "hosts" / conf.host
    return folder


def nova_folders(conf: cfg.ConfigOpts) -> list[Path]:
    """Where the nova-compute that had this host looks for its identity."""
    return [Path(conf.adopt.nova_state_path), *map(Path, conf.adopt.nova_config_dirs)]


def look(conf: cfg.ConfigOpts) -> FoundHypervisor:
    """What the hypervisor of this host has, without a driver. Changes nothing."""
    state_dir = state_dir_of(conf)
    if conf.compute_driver == "simulated":
        extras.require("embedded", "A compute with [DEFAULT] compute_driver = simulated")
        from causeway.virt.simulated import look as simulated_look

        return simulated_look.look(conf.host, state_dir)
    extras.require("libvirt", "A compute with [DEFAULT] compute_driver = libvirt")
    from causeway.model.image import QCOW2
    from causeway.virt.libvirt import look as libvirt_look
    from causeway.virt.libvirt.storage import rbd_pool

    instances_dir = _instances_dir(conf, state_dir)
    return libvirt_look.look(
        conf.libvirt.connection_uri,
        instances_dir,
        Path(conf.libvirt.nfs_mount_point_base or instances_dir / "mnt"),
        stores=(QCOW2,) if rbd_pool.from_options(conf) is None else (QCOW2, "rbd"),
    )


def _instances_dir(conf: cfg.ConfigOpts, state_dir: Path) -> Path:
    return Path(conf.instances_path) if conf.instances_path else state_dir / "instances"


def _driver(conf: cfg.ConfigOpts, state_dir: Path) -> Driver:
    # Only here: both are extras.
    if conf.compute_driver == "simulated":
        extras.require("embedded", "A compute with [DEFAULT] compute_driver = simulated")
        from causeway.virt.simulated import SimulatedDriver
        from causeway.virt.simulated.hardware import from_options

        store = conf.simulated.shared_stores.get(conf.host)
        return SimulatedDriver(
            conf.host,
            state_dir,
            hardware=from_options(conf),
            peers_dir=state_dir.parent,
            live_network=conf.simulated.live_networks.get(conf.host, ""),
            console_address=conf.serial_console.proxyclient_address,
            shared_store=Path(conf.state_path) / "stores" / store if store else None,
        )
    extras.require("libvirt", "A compute with [DEFAULT] compute_driver = libvirt")
    from causeway.virt.libvirt import consoles
    from causeway.virt.libvirt.driver import LibvirtDriver
    from causeway.virt.libvirt.guest_xml import processor, smbios
    from causeway.virt.libvirt.guest_xml.machine import default_machine
    from causeway.virt.libvirt.live import live_settings
    from causeway.virt.libvirt.storage import disk_pools
    from causeway.virt.libvirt.storage.ceph_volumes import CephAccount

    # os-vif and os-brick read their options ([os_vif_ovs] and others) from oslo.config's own object, in the same files.
    # Options that other libraries in the process require are not needed by a compute.
    with suppress(cfg.RequiredOptError):
        cfg.CONF([], project=PROJECT, default_config_files=conf.default_config_files, default_config_dirs=[])
    return LibvirtDriver(
        conf.libvirt.connection_uri,
        conf.host,
        _instances_dir(conf, state_dir),
        mount_dir=Path(conf.libvirt.nfs_mount_point_base) if conf.libvirt.nfs_mount_point_base else None,
        virt_type=conf.libvirt.virt_type,
        machine=default_machine(conf.libvirt.hw_machine_type),
        serial=smbios.Serial(conf.libvirt.sysinfo_serial),
        has_tpm=conf.libvirt.swtpm_enabled,
        cpu=processor.from_options(conf),
        host_ip=conf.my_ip,
        name_template=conf.instance_name_template,
        live=live_settings.from_options(conf),
        consoles=consoles.from_options(conf),
        ceph=CephAccount(conf.libvirt.rbd_user, conf.libvirt.rbd_secret_uuid),
        pool=disk_pools.from_options(conf),
    )

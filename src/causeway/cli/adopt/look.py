"""``causeway adopt look``: what a host has, on the host itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from causeway.cli import processes
from causeway.cli.adopt.group import adopt
from causeway.cli.adopt.shown import as_json_text, json_option
from causeway.model.found_host import FoundHost


@adopt.command()
@processes.config_file_option
@json_option
def look(config_files: tuple[Path, ...], as_json: bool) -> None:
    """Show what this host has of guests, disks, ports, mounts and of Nova.

    Run it on the host, with the options of its compute service, which need not run. Needs no database and no queue; changes
    nothing.
    """
    from causeway.cli import compute
    from causeway.compute.adopting import nova_processes
    from causeway.compute.adopting.ownership import Ownership

    conf = processes.configuration(config_files)
    if not conf.adopt.nova_state_path:
        raise click.ClickException("Set [adopt] nova_state_path to the state_path of this host's nova-compute.")
    with processes.failures_reported():
        ownership = Ownership(compute.state_dir_of(conf), compute.nova_folders(conf))
        found = FoundHost(
            conf.host,
            is_taken=ownership.is_taken,
            identities=ownership.identities(),
            processes=nova_processes.find(),
            hypervisor=compute.look(conf),
        )
    click.echo(as_json_text(found) if as_json else "\n".join(_lines(found)))


def _lines(found: FoundHost) -> Iterator[str]:
    hypervisor = found.hypervisor
    yield f"{found.host}: {'taken from Nova' if found.is_taken else 'not taken'}"
    for identity in found.identities:
        yield f"  {identity.path}: {identity.uuid or 'no uuid'}"
    for process in found.processes:
        yield f"  nova-compute runs: process {process.pid} ({process.command})"
    yield f"  {len(hypervisor.folders)} folders in {hypervisor.instances_path}, {len(hypervisor.mounts)} mounts below"
    yield f"  {hypervisor.mount_base}"
    for guest in hypervisor.guests:
        yield f"  {guest.uuid} {guest.name} {guest.power_state.name.lower()}{f': {guest.lack}' if guest.lack else ''}"
        for disk in guest.disks:
            base = f" on {disk.base}" if disk.base else ""
            yield f"    {disk.target} {disk.kind} {disk.disk_format or ''} {disk.source or 'empty'}{base}"
        for interface in guest.interfaces:
            yield f"    {interface.address} {interface.kind} {interface.device or ''}"


__all__ = ["look"]

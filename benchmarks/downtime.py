"""``python -m benchmarks.downtime [--gib N]``: how long a real guest is off that is resized to another cell, or migrated live.

It depends on how the disk travels. Each case has a server of its own, whose disk is filled with random data before. How long it
is off is told by the journal: the time of the steps that have the guest off, of which its own shutdown and the plugging of its
ports are parts, and how much travelled before and meanwhile. For how long it is silent is heard outside: the guest sends ten
ticks a second to an observer in its network; the longest pause between two of them counts, with the boot, where it boots. What a
live migration sends is counted where it arrives, by the target's network device.

Rows of ``in Ceph`` have the disk in one real Ceph (scripts/install-ceph.sh) that all hosts reach; without it they are left out.
They have, too, how long libvirt says that a guest stood still that went live, and how many calls of Ceph the hosts made:
``--trace`` lists these, by step.

Meanwhile the guest writes to its disk at a rate (``--dirty``). How fast disks are copied while it runs is compared with ``cp`` of
a file of that size on the same file system, with its flush.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import Any

import click
import openstack
from rich.console import Console
from rich.table import Table

from benchmarks import in_ceph
from causeway.cli.demo import ticks
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.sagas import StepRecord
from causeway.store.api import journal
from causeway.virt.lab.hosts import Lab, missing
from causeway.virt.lab.observer import PORT
from causeway.virt.libvirt.storage.nbd_server import served

MIB, GIB = 2**20, 2**30
PATIENCE = 1800
SETTLE_SECONDS = 5
# [moves] warm, [moves] direct
CASES = {
    "cold": ("never", "auto"),
    "warm, through the image service": ("auto", "never"),
    "warm, directly": ("auto", "auto"),
}
LIVE, LIVE_ACROSS, NEAR_LIVE = "live, inside a cell", "live, to another cell", "near-live, to another cell"
CEPH, CEPH_ACROSS = "in Ceph, inside a cell", "in Ceph, to another cell"
CEPH_LIVE, CEPH_LIVE_ACROSS = "live in Ceph, inside a cell", "live in Ceph, to another cell"
IN_CEPH = (CEPH, CEPH_ACROSS, CEPH_LIVE, CEPH_LIVE_ACROSS)
WITH_MEMORY = (LIVE, LIVE_ACROSS, NEAR_LIVE, CEPH_LIVE, CEPH_LIVE_ACROSS)
# Steps that have the guest off, or standing still; the first one sends.
OFF = ("HandOver", "FinishAtTarget")
STANDING_STILL = ("SaveGuest", "WakeGuest", "SwitchInstanceMapping", "ShowAtTarget", "LetGuestGoOn")
GENERATION = "aggregate_instance_extra_specs:gen"


@dataclass
class Downtime:
    """``whole``: seconds from the request to its end; ``off``: of the steps that have the guest off."""

    case: str
    gib: float
    whole: float
    off: float | None
    silent: float
    bytes_before: int
    bytes_meanwhile: int
    #: MiB/s, while the guest ran; None if a hypervisor copies
    copied: float | None = None
    #: seconds, of the guest that is shut down
    shutdown: float | None = None
    #: seconds that libvirt says of a live migration
    libvirts: float | None = None
    #: of Ceph
    calls: int | None = None


@click.command()
@click.option(
    "--gib", "sizes", multiple=True, type=float, help="GiB of random data. Default: 2 and 8; in Ceph 0 and 8."
)
@click.option("--dirty", default=1, show_default=True, help="MiB that the guest writes to its disk each second.")
@click.option(
    "--case", "cases", type=click.Choice([*CASES, *WITH_MEMORY[:3], *IN_CEPH]), multiple=True, help="Only these."
)
@click.option("--trace", is_flag=True, help="List each call of Ceph and libvirt, by its step.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path))
def main(sizes: tuple[float, ...], dirty: int, cases: tuple[str, ...], trace: bool, json_file: Path | None) -> None:
    """Measures downtimes on real guests (as root, with QEMU and libvirt)."""
    warnings.simplefilter("ignore")
    reason = missing()
    if reason is not None:
        raise click.ClickException(f"There can be no real guests here: {reason}")
    cases = cases or (*CASES, LIVE, LIVE_ACROSS, NEAR_LIVE, *IN_CEPH)
    speeds: dict[float, float] = {}
    found: list[Downtime] = []
    if files := [case for case in cases if case not in IN_CEPH]:
        with tempfile.TemporaryDirectory(prefix="downtime-") as directory:
            cloud = EmbeddedCloud(Path(directory), port=0, cells=2, hosts_per_cell=2, driver="libvirt")
            cloud.start()
            try:
                speeds = {gib: speed_of_cp(Path(directory), int(gib * GIB)) for gib in sizes or (2.0, 8.0)}
                put = partial(fill, cloud)
                found += [measure(cloud, case, gib, dirty, put) for gib in speeds for case in files]
            finally:
                cloud.stop()
                Lab(cloud.state.lab).stop(keep_guests=False)
    if shared := [case for case in cases if case in IN_CEPH]:
        if reason := in_ceph.missing():
            click.echo(f"Without the rows of Ceph, which {reason}", err=True)
        else:
            with tempfile.TemporaryDirectory(prefix="downtime-") as directory, in_ceph.running(Path(directory)) as on:
                cloud, ceph = on
                put = partial(in_ceph.fill, ceph)
                found += [
                    measure(cloud, case, gib, dirty, put, trace=trace) for gib in sizes or (0.0, 8.0) for case in shared
                ]
    show(found, speeds)
    if json_file is not None:
        json_file.write_text(json.dumps([asdict(each) for each in found], indent=1))


def measure(
    cloud: EmbeddedCloud,
    case: str,
    gib: float,
    dirty: int,
    put: Callable[[str, int, int], None],
    *,
    trace: bool = False,
) -> Downtime:
    """Resizes a new server, or migrates it live: to the other host of its cell, or to the other cell.

    ``put``: puts random data on the disk of a server, from a byte on, so many bytes.
    """
    for name, value in zip(("warm", "direct"), CASES.get(case, ("auto", "auto")), strict=True):
        cloud.conf.set_override(name, value, group="moves")
    connection = connect(cloud)
    compute = connection.compute
    source, target = (flavor(compute, f"gen{number}.filled{gib:g}", str(number), int(gib) + 2) for number in (1, 2))
    if case == CEPH:
        target = flavor(compute, f"gen1.larger{gib:g}", "1", int(gib) + 3)
    if case in (LIVE_ACROSS, NEAR_LIVE, CEPH_LIVE_ACROSS):
        source = flavor(compute, f"any.filled{gib:g}", None, int(gib) + 2)
    image, network = connection.image.find_image("demo"), connection.network.find_network("demo-net")
    (subnet,) = connection.network.subnets(network_id=network.id)
    server = compute.create_server(
        name="filled",
        flavor_id=source,
        image_id=image.id,
        networks=[{"uuid": network.id}],
        config_drive=True,
        user_data=base64.b64encode((ticks.script(subnet.gateway_ip, PORT) + dirtying(dirty)).encode()).decode(),
    )
    server = compute.wait_for_server(server, wait=PATIENCE)
    ((address,),) = server.addresses.values()
    compute.stop_server(server)
    compute.wait_for_server(server, "SHUTOFF", wait=PATIENCE)
    put(server.id, GIB, int(gib * GIB))
    with Lab(cloud.state.lab).network.observer(network.id) as observer, in_ceph.watched(cloud) as acts:
        compute.start_server(server)
        compute.wait_for_server(server, "ACTIVE", wait=PATIENCE)
        observer.wait_for(address["addr"], 0.0, PATIENCE)
        # Its boot is over, and what it writes with it.
        time.sleep(SETTLE_SECONDS)
        began = time.monotonic()
        acts.of_ceph.clear()
        received = bytes_received(cloud)
        if case in WITH_MEMORY:
            host = compute.get_server(server).compute_host
            apart = Lab(cloud.state.lab).network.hypervisors_apart(host) if case == NEAR_LIVE else nullcontext()
            with apart:
                migrate_live(compute, server, None if case in (LIVE, CEPH_LIVE) else elsewhere(cloud, host))
        else:
            compute.resize_server(server, target)
            wait_for_move(compute, server, "finished")
        whole = time.monotonic() - began
        calls = list(acts.of_ceph)
        observer.wait_for(address["addr"], time.monotonic(), PATIENCE)
        silent = observer.silence(address["addr"], began).seconds
    (move,) = journal.of_server(cloud.api_database, server.id)[-1:]
    steps = {each.step: each for each in journal.steps(cloud.api_database, move.id)}
    if case in (LIVE, LIVE_ACROSS, CEPH_LIVE, CEPH_LIVE_ACROSS):
        target_host = steps["ArriveAtTarget"].host or ""
        off = None
        found = Downtime(case, gib, whole, off, silent, bytes_received(cloud)[target_host] - received[target_host], 0)
    else:
        standing = STANDING_STILL if case == NEAR_LIVE else OFF
        off = sum(lasted(steps[name]) for name in standing)
        before, meanwhile = (steps[name].bytes_done or 0 for name in ("CopyWhileRunning", standing[0]))
        copied = before / MIB / lasted(steps["CopyWhileRunning"]) if before else None
        found = Downtime(case, gib, whole, off, silent, before, meanwhile, copied)
    if acts.shutdowns:
        found.shutdown = acts.shutdowns[-1].seconds
    if case in IN_CEPH:
        found.calls = len(calls)
    if off is None:
        found.libvirts = in_ceph.libvirts_downtime(cloud, compute.get_server(server).compute_host, server.id)
    if trace:
        show_trace(found, list(steps.values()), [*calls, *acts.of_libvirt])
    compute.delete_server(server)
    compute.wait_for_delete(server, wait=PATIENCE)
    return found


def show_trace(found: Downtime, steps: list[StepRecord], calls: list[in_ceph.Act]) -> None:
    """Each step with its seconds, and the calls of Ceph and libvirt that were made meanwhile."""
    click.echo(str(found))
    for step in steps:
        if step.started_at is None or step.ended_at is None:
            continue
        began, ended = (moment.replace(tzinfo=UTC).timestamp() for moment in (step.started_at, step.ended_at))
        click.echo(f"  {step.step} {step.host or ''}: {lasted(step):.2f} s")
        for call in sorted(calls, key=lambda call: call.began):
            if began <= call.began < ended:
                click.echo(f"    {call.began - began:6.2f} s {call.host} {call.name}: {call.seconds * 1000:.0f} ms")


def lasted(step: StepRecord) -> float:
    """Seconds."""
    if step.started_at is None or step.ended_at is None:
        raise click.ClickException(f"Step {step.step} did not end.")
    return (step.ended_at - step.started_at).total_seconds()


def dirtying(mib: int) -> str:
    """What has a guest write that much each second, here and there in 16 MiB of its disk."""
    return f"""\
(n=0; while [ {mib} != 0 ] && sleep 1; do
    n=$((n + 1))
    dd if=/dev/urandom of=/disk/dirt bs=65536 count={mib * 16} seek=$((n * {mib * 16} % 256)) conv=notrunc 2>/dev/null
    sync
done) &
"""


def speed_of_cp(folder: Path, size: int) -> float:
    """MiB/s of a copy in files, with its flush to the medium."""
    source, copy = folder / "random", folder / "copy"
    with source.open("wb") as file:
        for offset in range(0, size, 16 * MIB):
            file.write(os.urandom(min(16 * MIB, size - offset)))
        os.fsync(file.fileno())
    began = time.monotonic()
    subprocess.run(["cp", source, copy], check=True)
    subprocess.run(["sync", copy], check=True)
    ended = time.monotonic()
    for path in (source, copy):
        path.unlink()
    return size / MIB / (ended - began)


def elsewhere(cloud: EmbeddedCloud, host: str) -> str:
    """A host of another cell."""
    return next(hosts[0] for hosts in cloud.hosts_by_cell if host not in hosts)


def migrate_live(compute: Any, server: Any, host: str | None) -> None:
    """To that host, or to the other one of its cell, until that is completed."""
    compute.live_migrate_server(server, host=host, block_migration="auto")
    wait_for_move(compute, server, "completed")


def wait_for_move(compute: Any, server: Any, wanted: str) -> None:
    """Until its latest migration has that status."""
    path, end = f"/os-migrations?instance_uuid={server.id}", time.monotonic() + PATIENCE
    while not (found := compute.get(path, microversion="2.59").json()["migrations"]) or found[0]["status"] != wanted:
        # A move that got no host has no record, or a failed one; the server says why.
        now = compute.get_server(server)
        if (found and found[0]["status"] in ("failed", "error", "cancelled")) or now.fault or time.monotonic() > end:
            raise click.ClickException(f"The move did not succeed: {found[:1]} {now.status} {now.fault}.")
        time.sleep(0.05)


def bytes_received(cloud: EmbeddedCloud) -> dict[str, int]:
    network = Lab(cloud.state.lab).network
    return {host: network.bytes_received(host) for hosts in cloud.hosts_by_cell for host in hosts}


def fill(cloud: EmbeddedCloud, uuid: str, first: int, size: int) -> None:
    """Random data from the byte ``first`` on, behind what the guest uses, while it is off."""
    (disk,) = cloud.state.path.rglob(f"{uuid}/disk")
    with served(disk, "qcow2", writable=True) as writer:
        for offset in range(first, first + size, 16 * MIB):
            writer.write(offset, os.urandom(min(16 * MIB, first + size - offset)))
        writer.flush()


def flavor(compute: Any, name: str, generation: str | None, disk: int) -> str:
    if compute.find_flavor(name) is None:
        made = compute.create_flavor(name=name, id=name, vcpus=1, ram=128, disk=disk)
        if generation is not None:
            compute.create_flavor_extra_specs(made, {GENERATION: generation})
    return name


def connect(cloud: EmbeddedCloud) -> Any:
    account = cloud.accounts["admin"]
    auth = {
        "auth_url": cloud.accounts.auth_url,
        "username": account.username,
        "password": account.password,
        "project_name": "demo",
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    return openstack.connect(
        auth=auth, region_name="RegionOne", compute_api_version="2", load_yaml_config=False, load_envvars=False
    )


def show(found: list[Downtime], speeds: dict[float, float]) -> None:
    columns = ("Whole move", "Guest off", "Silent outside", "Bytes before", "Bytes while off", "Copied at", "Of cp")
    more = ("Its shutdown", "libvirt's downtime", "Calls of Ceph")
    table = Table("The disk travels", "GiB", *columns, *more)
    for each in found:
        table.add_row(
            each.case,
            f"{each.gib:g}",
            f"{each.whole:.1f} s",
            f"{each.off:.1f} s" if each.off is not None else "never",
            f"{each.silent:.2f} s",
            f"{each.bytes_before:,}",
            f"{each.bytes_meanwhile:,}",
            f"{each.copied:.0f} MiB/s" if each.copied is not None else "",
            f"{each.copied / speeds[each.gib]:.0%}" if each.copied is not None else "",
            f"{each.shutdown:.1f} s" if each.shutdown is not None else "",
            f"{each.libvirts:.2f} s" if each.libvirts is not None else "",
            str(each.calls) if each.calls is not None else "",
        )
    table.caption = "; ".join(f"cp of {gib:g} GiB: {speed:.0f} MiB/s" for gib, speed in speeds.items())
    Console(width=180).print(table)


if __name__ == "__main__":
    main()

"""``python -m benchmarks.silence [--network N] [--times N]``: how long a guest is silent while it migrates, by network.

A guest goes round and round: live to the other host of its cell, live to another cell, and near-live back, because then the
hypervisors of the two cells don't reach one another. Somebody in its network, on a third host, asks it for echoes 20 times a
second. It is silent for the longest time between two answers. For how long it had to be, its hypervisors say: from the event
that it is paused at its source, to the event that it runs at its target.

Networks are the lab's bridges (with devcloud), and, beside the real services, Open vSwitch with Neutron's agents, the same with
iptables_hybrid, and OVN.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from contextlib import ExitStack
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# A library of a library still knows eventlet, which warns of itself when it is imported; nothing here uses it.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")

import click  # noqa: E402
from rich.console import Console  # noqa: E402

from benchmarks.downtime import LIVE, LIVE_ACROSS, NEAR_LIVE  # noqa: E402
from benchmarks.silence.clouds import NETWORKS, PATIENCE, Cloud, cloud_of, why_not  # noqa: E402
from benchmarks.silence.echoes import Echoes  # noqa: E402
from benchmarks.silence.figures import Migration, steps_of, table_of  # noqa: E402
from benchmarks.silence.standstill import GuestEvents, listening, standstill  # noqa: E402
from causeway.store.api import journal  # noqa: E402
from causeway.virt.lab.observer import longest_silence  # noqa: E402

# case -> from which host to which (numbers of `Cloud.hosts`), and who listens; the last one ends where the first begins
ROUND = {LIVE: (0, 1, 2), LIVE_ACROSS: (1, 2, 0), NEAR_LIVE: (2, 0, 1)}
# Two seconds of them: the guest is reached as before.
ANSWERS = 40


@click.command()
@click.option("--network", "networks", type=click.Choice(NETWORKS), multiple=True, help="Only these.")
@click.option("--times", default=5, show_default=True, help="How often the guest goes round on each network.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path))
def main(networks: tuple[str, ...], times: int, json_file: Path | None) -> None:
    """Measures silences on real guests (as root, with QEMU, libvirt, Open vSwitch, OVN and the real services)."""
    warnings.simplefilter("ignore")
    chosen = networks or NETWORKS
    for network in chosen:
        if reason := why_not(network):
            raise click.ClickException(f"There can be no guests on {network} here: {reason}")
    found: list[Migration] = []
    for network in chosen:
        with cloud_of(network) as cloud:
            for migration in go_round(cloud, network, times):
                found.append(migration)
                click.echo(f"{network}, {migration.case}: silent for {migration.silent:.2f} s", err=True)
        if json_file is not None:
            json_file.write_text(json.dumps([asdict(each) for each in found], indent=1))
    Console(width=150).print(table_of(found))


def go_round(cloud: Cloud, network: str, times: int) -> Any:
    """Yields a `Migration` when each is over."""
    server = cloud.boot(cloud.hosts[0])
    ((address,),) = server.addresses.values()
    with listening(cloud.uris, server.id) as events:
        for _ in range(times):
            for case in ROUND:
                yield measure(cloud, network, case, server, address["addr"], events)


def measure(cloud: Cloud, network: str, case: str, server: Any, address: str, events: GuestEvents) -> Migration:
    source, target, third = (cloud.hosts[number] for number in ROUND[case])
    place = cloud.place(third)
    with ExitStack() as opened:
        echoes = opened.enter_context(Echoes(place.inside, place.address, address))
        echoes.wait_for(time.monotonic(), ANSWERS, PATIENCE)
        if case == NEAR_LIVE:
            for host in (source, target):
                opened.enter_context(cloud.underlay.hypervisors_apart(host))
        load, began = os.getloadavg()[0], time.monotonic()
        migrate(cloud, server, target)
        whole = time.monotonic() - began
        echoes.wait_for(time.monotonic(), ANSWERS, PATIENCE)
        heard = echoes.heard()
    stood = standstill(events.since(began), source, target)
    if stood is None:
        raise click.ClickException(f"The hypervisors did not say that the guest went: {events.since(began)}")
    silence = longest_silence(heard, began)
    last, _ = silence
    return Migration(
        network,
        case,
        silent=silence[1] - last,
        still=stood[1] - stood[0],
        whole=whole,
        load=load,
        steps=steps_of(steps(cloud, server), silence),
        stopped_at=round(stood[0] - last, 3),
        resumed_at=round(stood[1] - last, 3),
    )


def migrate(cloud: Cloud, server: Any, host: str) -> None:
    """Until the migration is completed and the server has no task."""
    compute, path = cloud.compute, f"/os-migrations?instance_uuid={server.id}"

    def migrations() -> dict[int, str]:
        return {each["id"]: each["status"] for each in compute.get(path, microversion="2.59").json()["migrations"]}

    before, end = migrations().keys(), time.monotonic() + PATIENCE
    compute.live_migrate_server(server, host=host, block_migration="auto")
    while True:
        statuses = {status for number, status in migrations().items() if number not in before}
        if statuses == {"completed"} and compute.get_server(server).task_state is None:
            return
        if statuses & {"failed", "error", "cancelled"} or time.monotonic() > end:
            raise click.ClickException(f"The migration to {host} did not succeed: {statuses}.")
        time.sleep(0.05)


def steps(cloud: Cloud, server: Any) -> list[tuple[str, float, float]]:
    """Of the server's newest operation: name, from and to (of `time.monotonic`)."""
    offset = time.time() - time.monotonic()

    def moment(at: datetime) -> float:
        return at.replace(tzinfo=UTC).timestamp() - offset

    newest = journal.of_server(cloud.api_database, server.id)[-1]
    return [
        (step.step, moment(step.started_at), moment(step.ended_at))
        for step in journal.steps(cloud.api_database, newest.id)
        if step.phase == "do" and step.started_at is not None and step.ended_at is not None
    ]


if __name__ == "__main__":
    main()

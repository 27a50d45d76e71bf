"""``python -m benchmarks.busy_guests [--rates 1,10,50,100]``: how a guest moves that writes while its disk is copied in rounds.

For each rate an embedded cloud, in which time jumps instead of waiting for the link between hosts. Its guest writes always new
blocks, which is the worst case, and is resized to the other cell. What is found follows from the rate, the link, the disk and
``[moves]`` alone: it is the same on a slow machine. The guest itself knows for how long it was off, so its boot is part of that.
"""

from __future__ import annotations

import logging
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import msgspec
import openstack
from rich.console import Console
from rich.table import Table

from causeway.embedded.cloud import EmbeddedCloud
from causeway.embedded.content import GENERATION
from causeway.model.flavor import Flavor
from causeway.moves.memory import MoveMemory
from causeway.store.api import flavors, journal

PATIENCE = 300.0
MIB, GIB = 1 << 20, 1 << 30


@dataclass
class Found:
    """``before`` and ``left``: bytes that travelled before the guest was off, and then. ``seconds``: for which it was off."""

    rounds: int
    before: int
    left: int
    seconds: float


@click.command()
@click.option("--rates", default="1,10,50,100,150", show_default=True, help="MiB/s that the guests write.")
@click.option("--link", default=112.0, show_default=True, help="MiB/s between the hosts.")
@click.option("--data", default=8.0, show_default=True, help="GiB on each disk.")
@click.option("--option", "options", multiple=True, metavar="NAME=VALUE", help="Of [moves], such as warm_rounds=10.")
def main(rates: str, link: float, data: float, options: tuple[str, ...]) -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    moves = dict(each.split("=", 1) for each in options)
    table = Table("writes, MiB/s", "rounds", "GiB before", "left, MiB", "guest off, s")
    for each in rates.split(","):
        found = measure(float(each), link, data, moves)
        sizes = (f"{found.before / GIB:.2f}", f"{found.left / MIB:.0f}")
        table.add_row(each, str(found.rounds), *sizes, f"{found.seconds:.1f}")
    Console().print(table)


def measure(rate: float, link: float, data: float, moves: dict[str, Any]) -> Found:
    with tempfile.TemporaryDirectory(prefix="causeway-busy-", ignore_cleanup_errors=True) as folder:
        simulated = {"guest_disk_rate": rate, "guest_data": data, "link_bandwidth": link, "clock": f"{folder}/clock"}
        cloud = EmbeddedCloud(Path(folder), port=0, overrides={"simulated": simulated, "moves": moves})
        cloud.start()
        try:
            return move(cloud, int(data))
        finally:
            cloud.stop()


def move(cloud: EmbeddedCloud, data: int) -> Found:
    for generation in "12":
        # The guest has data, and room to write for as long as the move takes.
        name, size = f"busy{generation}", 1000 + data
        flavors.create(cloud.api_database, Flavor(name, name, 1, 128, size, extra_specs={GENERATION: generation}))
    account = cloud.accounts["demo"]
    auth = {
        "auth_url": cloud.accounts.auth_url,
        "username": account.username,
        "password": account.password,
        "project_name": account.project_name,
        "user_domain_id": "default",
        "project_domain_id": "default",
    }
    user = openstack.connect(auth=auth, region_name="RegionOne", load_yaml_config=False, load_envvars=False)
    image = user.image.find_image("demo").id
    server = user.compute.create_server(name="busy", flavor_id="busy1", image_id=image, networks="none").id
    until(user, server, "ACTIVE")
    user.compute.resize_server(server, "busy2")
    until(user, server, "VERIFY_RESIZE")
    (operation,) = [each for each in journal.of_server(cloud.api_database, server) if each.data.get("warm")]
    memory = msgspec.convert(operation.data, MoveMemory)
    assert memory.warm is not None
    driver: Any = cloud.computes["cell2-host1"].host.driver
    seconds = driver.guest_stood_still(server)
    return Found(memory.warm.rounds, memory.warm.sent, memory.bytes_of_disks or 0, seconds)


def until(user: Any, server: str, status: str) -> None:
    """Raises ClickException if that takes too long."""
    end = time.monotonic() + PATIENCE
    while (seen := user.compute.get_server(server).status) != status:
        if seen == "ERROR" or time.monotonic() > end:
            raise click.ClickException(f"The server is {seen}, not {status}")
        time.sleep(0.2)


if __name__ == "__main__":
    main()

"""``make demo TARGET=integration``: the demonstration's story on a cloud of many processes beside the real services.

Everything is started for it, as root: Keystone, Glance, Neutron with its Open vSwitch agents (``NETWORK=ovn``: with OVN), Cinder,
Placement, a database, RabbitMQ; two hosts with libvirt; api, two conductors, scheduler and two computes of ours. All of it ends
with the story.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
import warnings
from contextlib import ExitStack
from pathlib import Path

# A library of a library still knows eventlet, which warns of itself when it is imported; nothing here uses it.
warnings.filterwarnings("ignore", message=r"\s*Eventlet is deprecated")

import click  # noqa: E402
from platformdirs import user_cache_path  # noqa: E402

from causeway.cli.demo.chapter import SIZES  # noqa: E402
from causeway.cli.demo.client import ADMIN, Client  # noqa: E402
from causeway.cli.demo.command import FAILURES, conclude  # noqa: E402
from causeway.cli.demo.screen import Screen  # noqa: E402
from causeway.cli.demo.story import Story  # noqa: E402
from causeway.embedded.settings import StateDir  # noqa: E402
from causeway.virt.lab.guest_image import build_guest_image  # noqa: E402
from causeway.virt.lab.network import PingResult  # noqa: E402
from causeway.virt.lab.observer import Observer  # noqa: E402
from tests.integration.real_services import ovn  # noqa: E402
from tests.integration.real_services.audits import audit  # noqa: E402
from tests.integration.real_services.configuration import PASSWORD  # noqa: E402
from tests.integration.real_services.guests import GuestCloud, Networking, guest_cloud, missing  # noqa: E402
from tests.integration.real_services.hybrid import HYBRID  # noqa: E402
from tests.integration.real_services.services import NAMES  # noqa: E402

NETWORKS = {"agents": Networking(), "hybrid": HYBRID, "ovn": ovn.OVN}
CELL1, CELL2 = "cell1-host1", "cell2-host1"
CELLS = {"cell1": [CELL1], "cell2": [CELL2]}


class IntegrationCloud:
    """What the story needs, of a deployment beside the real services."""

    real = True
    # One host in each cell, of few processors.
    leaving = 4

    def __init__(self, cloud: GuestCloud) -> None:
        self._cloud = cloud
        self.state = StateDir(cloud.directory)
        accounts = {"causeway": ("demo", PASSWORD, "demo"), ADMIN: ("admin", PASSWORD, "demo")}
        self.state.write_clouds(cloud.services.addresses.auth_url, accounts)

    def database(self, name: str) -> str:
        return self._cloud.databases[name]

    def ping(self, network_id: str, address: str) -> PingResult:
        """From each host: one of the two ways goes through both switches.

        The time is that of the slower one.
        """
        switches, admin = self._cloud.services.switches, self._cloud.admin
        results = [switches.ping(host, admin, network_id, address) for host in self._cloud.hosts]
        sent, received = sum(result.sent for result in results), sum(result.received for result in results)
        return PingResult(sent, received, max(result.round_trip_ms or 0.0 for result in results))

    def bytes_received(self, host: str) -> int | None:  # noqa: ARG002
        """Nobody counts."""
        return None

    def observer(self, network_id: str) -> Observer | None:  # noqa: ARG002
        """Nobody is in networks of Open vSwitch."""
        return None

    def apart(self, host: str) -> None:
        """Nobody sees to that."""

    def storage(self, host: str) -> None:
        """Disks are files of their hosts."""

    def in_storage(self, host: str, server: str) -> list[str]:  # noqa: ARG002
        return []

    def console(self) -> None:
        """There is none."""

    def manage(self) -> list[str]:
        folder = self._cloud.directory
        return [f"--config-file={folder / name}" for name in ("services.conf", "common.conf", "databases.conf")]

    def make_flavors(self, client: Client) -> None:
        """What the embedded cloud has from the start: a generation of hardware for each cell, and a flavor of either."""
        ties = {"gen1.small": (1, CELL1), "gen2.small": (2, CELL2)}
        for name, (vcpus, memory) in SIZES.items():
            generation, host = ties.get(name, (None, None))
            words = ["--id", name, "--vcpus", str(vcpus), "--ram", str(memory), "--disk", str(generation or 1)]
            if generation is None or host is None:
                client.run("flavor", "create", *words, name, cloud=ADMIN)
                continue
            words += ["--property", f"aggregate_instance_extra_specs:gen={generation}"]
            client.run("flavor", "create", *words, name, cloud=ADMIN)
            client.run("aggregate", "create", "--property", f"gen={generation}", f"gen{generation}", cloud=ADMIN)
            client.run("aggregate", "add", "host", f"gen{generation}", host, cloud=ADMIN)


def run_story(cloud: GuestCloud, screen: Screen) -> None:
    """The story, and what `causeway audit` says after it."""
    integration = IntegrationCloud(cloud)
    integration.make_flavors(Client(screen, integration.state.clouds))
    image = build_guest_image(user_cache_path("causeway") / "guest-image").path
    Story(integration, screen, (image, "qcow2")).run()
    cloud.settle()
    disagreements = audit(cloud)
    screen.check("causeway audit finds nothing", not disagreements, disagreements or "")


@click.command()
@click.option("--network", type=click.Choice(list(NETWORKS)), default="agents", help="What Neutron has on the hosts.")
def main(network: str) -> None:
    screen, began = Screen(), time.monotonic()
    screen.heading("Causeway beside Keystone, Glance, Neutron, Cinder and Placement: two cells, one QEMU host in each")
    if reason := missing() or (ovn.missing() if network == "ovn" else None):
        screen.console.print(f"This can't run here: {reason}.")
        raise SystemExit(2)
    folder = Path(tempfile.mkdtemp(prefix="causeway-demo-"))
    try:
        with ExitStack() as running:
            with screen.working("Services, hosts, switches and our own processes start (a minute or two)"):
                cloud = running.enter_context(guest_cloud(folder, cells=CELLS, networking=NETWORKS[network]))
            screen.note(f"ready after {time.monotonic() - began:.0f} s")
            for service in NAMES:
                screen.note(f"{service}: {cloud.services.addresses.url(service)}")
            try:
                run_story(cloud, screen)
            except FAILURES as failure:
                screen.check("the story came to its end", False, f"{type(failure).__name__}: {failure}")
            screen.heading("The end")
            with screen.working("Everything stops"):
                running.close()
        screen.check("everything stopped cleanly", True)
    except AssertionError as failure:
        screen.check("everything started and stopped", False, failure)
    finally:
        if screen.failed:
            screen.note(f"logs: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    conclude(screen, time.monotonic() - began, "libvirt, real services")


if __name__ == "__main__":
    os.umask(0o022)
    main()

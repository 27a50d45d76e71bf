"""The deployment for scenarios that log in: real guests of libvirt behind the network service's routers.

The first host is the network node, too: Neutron's L3 agent has its routers there, in namespaces, with floating IPs by NAT. Guests
get their keys from the metadata service, through the router's haproxy and Neutron's metadata agent. Tempest reaches floating IPs
from this machine, which is on the provider network.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from causeway.virt.lab.guest_image import GuestImage
from tests.functional.processes.own_process import PATIENCE, until
from tests.integration.real_services import guests as real
from tests.integration.real_services.configuration import render
from tests.integration.real_services.guests import GuestCloud, Networking, guest_cloud
from tests.integration.real_services.machine import VENV
from tests.integration.real_services.switches import CONNECTION
from tests.integration.tempest import consoles, guest_image, stack
from tests.ports import free_port

NETWORK_NODE = "cell1-host1"
CELLS = {"cell1": [NETWORK_NODE, "cell1-host2"], "cell2": ["cell2-host1"]}
OPTIONS = {
    **real.OPTIONS,
    **stack.OPTIONS,
    "DEFAULT": {**real.OPTIONS["DEFAULT"], "shelved_offload_time": 0},
}
SECRET = "of-agent-and-service"
_PROGRAMS = ("iptables", "haproxy", "ethtool", "arping", "radvd")


def missing() -> str | None:
    """Why it can't run here; None if it can."""
    if reason := real.missing():
        return reason
    absent = [name for name in _PROGRAMS if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
    return f"no {', '.join(absent)}: make tempest installs them" if absent else None


class GuestsBehindRouters(GuestCloud):
    """``outside``: the first three numbers of the external network's /24."""

    outside: str
    console_port = 0

    def guest_image(self) -> GuestImage:
        return guest_image.build(user_cache_path("causeway") / "guest-image")

    def hypervisor(self, host: str) -> dict[str, dict[str, str]]:
        # Consoles of a host in a namespace are reached on the control network.
        address = self.machines.addresses[host]
        screens = {"server_listen": address, "server_proxyclient_address": address}
        return {**super().hypervisor(host), "vnc": screens, "serial_console": {"proxyclient_address": address}}

    def start(self) -> None:
        self.delete_names()
        super().start()
        consoles.start(self, self.console_port)
        self.outside = self.machines.join_provider()
        address = self.metadata_address()
        proxy = {"service_metadata_proxy": "true", "metadata_proxy_shared_secret": SECRET}
        self._write("metadata.conf", {"neutron": proxy})
        self.start_role("metadata", "metadata", "--bind", address, "--workers", "1").wait_ready()
        self.start_agents(address)

    def stop(self) -> None:
        self.end_proxies()
        consoles.stop(self)
        metadata = self.processes.pop("metadata")
        metadata.terminate()
        assert metadata.wait_ended() == 0
        super().stop()
        self.delete_names()

    def metadata_address(self) -> str:
        """Where the metadata service listens: its agents reach it there."""
        return f"127.0.0.1:{free_port()}"

    def end_proxies(self) -> None:
        """The agents' own end leaves their proxies running, for their next start."""
        for file in self.services.machine.directory.glob("state/routers/external/pids/*.haproxy"):
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGTERM)

    def delete_names(self) -> None:
        """Those of the agents' namespaces that are no more."""
        _delete_names_of_routers()

    def start_agents(self, metadata: str) -> None:
        """Those of routers and metadata."""
        machine, queue = self.services.machine, self.services.addresses.queue
        state = machine.directory / "state/routers"
        state.mkdir()
        common = {"host": NETWORK_NODE, "transport_url": queue, "state_path": state}
        host, _, port = metadata.partition(":")
        routers = {
            "DEFAULT": {
                **common,
                "interface_driver": "openvswitch",
                "metadata_proxy_socket": state / "metadata",
                "agent_mode": "legacy",
            },
            "ovs": {"ovsdb_connection": CONNECTION},
            "agent": {"root_helper": "", "use_helper_for_ns_read": "false", "report_interval": 10},
            "oslo_concurrency": {"lock_path": state},
        }
        proxies = {
            "DEFAULT": {
                **common,
                "nova_metadata_host": host,
                "nova_metadata_port": port,
                "metadata_proxy_shared_secret": SECRET,
                "metadata_proxy_socket": state / "metadata",
                "metadata_workers": 1,
            },
            "agent": {"report_interval": 10},
            "oslo_concurrency": {"lock_path": state},
        }
        inside = self.machines.inside(NETWORK_NODE)
        agents: list[tuple[str, Any, list[str]]] = [
            ("l3", routers, inside),
            ("metadata", proxies, []),
        ]
        for name, options, prefix in agents:
            file = machine.write(f"etc/neutron/{name}_agent.ini", render(options))
            machine.start(f"{name}-agent", [*prefix, VENV / f"bin/neutron-{name}-agent", "--config-file", file])
        until(
            lambda: {agent.binary for agent in self.admin.network.agents() if agent.is_alive},
            lambda seen: {"neutron-l3-agent", "neutron-metadata-agent"} <= seen,
            "the agents of routers and metadata",
            PATIENCE,
        )


def _delete_names_of_routers(folder: Path = Path("/run/netns")) -> None:
    """Deletes the names of namespaces that are no more.

    The agent mounts a router's namespace where only its host sees it. What stays is an empty file, with which the next agent,
    which deletes the routers that it does not know, fails.
    """
    for file in folder.glob("qrouter-*"):
        # A path is_mount only if it is a folder.
        if not os.path.ismount(file):
            file.unlink()


@contextmanager
def guests(
    directory: Path, database: str, kind: type[GuestsBehindRouters], networking: Networking
) -> Iterator[GuestsBehindRouters]:
    port = free_port()
    options = {**OPTIONS, **consoles.options(port)}
    with guest_cloud(
        directory,
        cells=CELLS,
        database=database,
        options=options,
        kind=type("Guests", (kind,), {"console_port": port}),
        networking=networking,
    ) as cloud:
        assert isinstance(cloud, GuestsBehindRouters)
        yield cloud

"""OVN where guests have their metadata: Neutron's OVN agent on each host (its extension "metadata"), haproxy, and our service.

The guests' image can have VLANs, too.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from causeway.virt.lab.guest_image import Additions, GuestImage, build_guest_image
from tests.integration.real_services.configuration import Options, render
from tests.integration.real_services.guests import GuestCloud, Networking
from tests.integration.real_services.machine import VENV, Machine
from tests.integration.real_services.machines import Machines, run
from tests.integration.real_services.ovn import Central, OvnMachines, OvnServices, OvnSwitches
from tests.integration.real_services.switches import CONNECTION, Switches
from tests.ports import free_port

SECRET = "of-agent-and-service"
# In the order in which they need one another.
VLAN_MODULES = ("llc", "stp", "garp", "mrp", "8021q")
_NAMESPACES = Path("/run/netns")


class MetadataSwitches(OvnSwitches):
    """``service``: the port of the metadata service."""

    def __init__(self, machines: OvnMachines, machine: Machine, central: Central, service: int) -> None:
        super().__init__(machines, machine, central)
        self._service = service

    def _prepare_agent(self, host: str) -> None:
        super()._prepare_agent(host)
        # The agent's namespaces are the host's own, and end with it.
        own = self._state(host) / "netns"
        own.mkdir(parents=True)
        _NAMESPACES.mkdir(parents=True, exist_ok=True)
        run(*self._machines.inside(host), "mount", "--bind", str(own), str(_NAMESPACES))

    def start(self, host: str) -> None:
        super().start(host)
        state = self._state(host)
        options: dict[str, dict[str, object]] = {
            "DEFAULT": {
                "host": host,
                "state_path": state,
                "nova_metadata_host": self._machines.address,
                "nova_metadata_port": self._service,
                "metadata_proxy_shared_secret": SECRET,
                "metadata_workers": 0,
            },
            "agent": {"extensions": "metadata", "root_helper": "", "use_helper_for_ns_read": "false"},
            "oslo_concurrency": {"lock_path": state},
            "ovs": {"ovsdb_connection": CONNECTION},
            "ovn": {"ovn_nb_connection": self.central.urls["nb"], "ovn_sb_connection": self.central.urls["sb"]},
        }
        file = self._machine.write(f"etc/neutron/metadata-{host}.ini", render(options))
        command = [str(VENV / "bin/neutron-ovn-agent"), "--config-file", str(file)]
        self._machine.start(f"metadata-{host}", [*self._machines.inside(host), *command])

    def stop_proxies(self) -> None:
        """They outlive the agents, for their next start."""
        for file in (self._machine.directory / "state").glob("metadata-*/external/pids/*.haproxy"):
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGTERM)

    def _state(self, host: str) -> Path:
        return self._machine.directory / "state" / f"metadata-{host}"


class MetadataServices(OvnServices):
    """``metadata_port``: of the metadata service, at this machine's address on the control network."""

    switches: MetadataSwitches

    def __init__(self, directory: Path, machines: OvnMachines, **options: Any) -> None:
        self.metadata_port = free_port()
        super().__init__(directory, machines, **options)

    def _make_switches(self, machines: Machines, queue: str) -> Switches:  # noqa: ARG002
        assert isinstance(machines, OvnMachines)
        return MetadataSwitches(machines, self.machine, Central(self.machine, machines.address), self.metadata_port)

    def _ml2(self) -> Options:
        options = super()._ml2()
        own = {"ovn_metadata_enabled": "true", "enable_distributed_floating_ip": "true"}
        return {**options, "ovn": {**options["ovn"], **own}}

    def stop(self) -> None:
        super().stop()
        self.switches.stop_proxies()


class MetadataCloud(GuestCloud):
    services: MetadataServices

    def guest_image(self) -> GuestImage:
        return build_guest_image(user_cache_path("causeway") / "guest-image", Additions(modules=VLAN_MODULES))

    def start(self) -> None:
        super().start()
        own = {"service_metadata_proxy": "true", "metadata_proxy_shared_secret": SECRET}
        self._write("metadata.conf", {"neutron": own})
        where = f"{self.machines.address}:{self.services.metadata_port}"
        self.start_role("metadata", "metadata", "--bind", where, "--workers", "1").wait_ready()

    def stop(self) -> None:
        metadata = self.processes.pop("metadata")
        metadata.terminate()
        assert metadata.wait_ended() == 0
        super().stop()


OVN_WITH_METADATA = Networking(OvnMachines, MetadataServices)

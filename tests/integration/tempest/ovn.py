"""The same on OVN: its own routers, whose gateway is the first host, and Neutron's metadata agent for OVN on each host."""

from __future__ import annotations

import os
import signal
from contextlib import suppress

from tests.functional.processes.own_process import PATIENCE, until
from tests.integration.real_services import ovn
from tests.integration.real_services.configuration import Options, render
from tests.integration.real_services.guests import Networking
from tests.integration.real_services.machine import VENV
from tests.integration.real_services.machines import Machines, run
from tests.integration.real_services.ovn import Central, OvnMachines, OvnServices, OvnSwitches
from tests.integration.real_services.switches import CONNECTION, Switches
from tests.integration.tempest.guests import NETWORK_NODE, SECRET, GuestsBehindRouters
from tests.ports import free_port

missing = ovn.missing


class SwitchesOfRouters(OvnSwitches):
    """One host has the routers' gateways."""

    def _prepare_agent(self, host: str) -> None:
        super()._prepare_agent(host)
        # A network's namespace has the same name on each host.
        run(*self._machines.inside(host), "mount", "-t", "tmpfs", "namespaces", "/run/netns")
        if host == NETWORK_NODE:
            self.control(host, "set", "Open_vSwitch", ".", "external_ids:ovn-cms-options=enable-chassis-as-gw")


class ServicesOfRouters(OvnServices):
    """Networks have ports for metadata."""

    def _make_switches(self, machines: Machines, queue: str) -> Switches:  # noqa: ARG002
        if not isinstance(machines, OvnMachines):
            raise TypeError("OVN's hosts have a third network")
        return SwitchesOfRouters(machines, self.machine, Central(self.machine, machines.address))

    def _ml2(self) -> Options:
        options = super()._ml2()
        return {**options, "ovn": {**options["ovn"], "ovn_metadata_enabled": "true"}}


NETWORKING = Networking(OvnMachines, ServicesOfRouters)


class GuestsOnOvn(GuestsBehindRouters):
    services: OvnServices

    def metadata_address(self) -> str:
        # The agents ask from their hosts.
        return f"{self.machines.address}:{free_port()}"

    def start_agents(self, metadata: str) -> None:
        host_of_metadata, _, port = metadata.partition(":")
        machine = self.services.machine
        for host in self.hosts:
            state = machine.directory / f"state/metadata-{host}"
            state.mkdir()
            options: Options = {
                "DEFAULT": {
                    "host": host,
                    "state_path": state,
                    "nova_metadata_host": host_of_metadata,
                    "nova_metadata_port": port,
                    "metadata_proxy_shared_secret": SECRET,
                    "metadata_workers": 0,
                },
                "agent": {"root_helper": "", "use_helper_for_ns_read": "false"},
                "oslo_concurrency": {"lock_path": state},
                "ovs": {"ovsdb_connection": CONNECTION},
                "ovn": {"ovn_sb_connection": self.services.switches.central.urls["sb"]},
            }
            file = machine.write(f"etc/neutron/metadata-{host}.ini", render(options))
            program = VENV / "bin/neutron-ovn-metadata-agent"
            machine.start(f"metadata-{host}", [*self.machines.inside(host), program, "--config-file", file])
        until(self._with_metadata, lambda seen: seen == set(self.hosts), "the agents of metadata", PATIENCE)

    def _with_metadata(self) -> set[str]:
        agents = self.admin.network.agents()
        return {each.host for each in agents if each.binary == "neutron-ovn-metadata-agent" and each.is_alive}

    def end_proxies(self) -> None:
        for file in self.services.machine.directory.glob("state/metadata-*/external/pids/*.haproxy"):
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGTERM)

    def delete_names(self) -> None:
        """They end with their hosts."""

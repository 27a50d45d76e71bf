"""A cloud to break whose roles are processes of their own, over RabbitMQ: two conductors share the moves."""

from __future__ import annotations

from typing import Any

import yaml

from causeway.conf import new_config
from causeway.context import admin_context
from causeway.embedded import content
from causeway.model.operations import Operation
from causeway.requests.of_servers import context_of
from causeway.rpc.client import RpcClient
from causeway.rpc.conductor import TOPIC
from causeway.rpc.transport import Transports
from tests.faults.clouds.halfway import HalfwayDevcloud
from tests.faults.clouds.site import Site
from tests.functional.processes.deployment import CONDUCTORS, Deployment
from tests.functional.processes.own_process import until
from tests.functional.processes.rabbit import rabbit, why_not

# No operation has this id.
NOBODY = "00000000-0000-0000-0000-000000000000"

__all__ = ["CONDUCTORS", "RolesSite", "until", "why_not"]


class FilledDeployment(Deployment):
    """With what `causeway up` puts into a new cloud."""

    def _fill(self) -> None:
        self.member, self.admin = self.connection("causeway"), self.connection("causeway-admin")
        content.make_flavors(self.api_database)
        for generation, hosts in enumerate(self._cells.values(), start=1):
            aggregate = self.admin.compute.create_aggregate(name=f"gen{generation}")
            self.admin.compute.set_aggregate_metadata(aggregate, {"gen": str(generation)})
            for host in hosts:
                self.admin.compute.add_host_to_aggregate(aggregate, host)
        self.admin.image.create_image(
            name="demo",
            disk_format="raw",
            container_format="bare",
            data=b"disk".ljust(4096, b"\0"),
            visibility="public",
        )
        network = self.admin.network.create_network(name="demo-net", shared=True)
        self.admin.network.create_subnet(network_id=network.id, ip_version=4, cidr="10.0.0.0/24")


class RolesSite(Site):
    """Use it as a context manager; needs RabbitMQ (`why_not`)."""

    def start(self) -> None:
        cells = {cell: [host for host in self.hosts if host.startswith(cell)] for cell in ("cell1", "cell2")}
        self._rabbit = rabbit(self.state.path / "rabbit")
        url = self._rabbit.__enter__()
        # Who calls a conductor that is paused gets no answer: that must not take longer than everything else here.
        self.options["DEFAULT"]["rpc_response_timeout"] = 5
        self.deployment = FilledDeployment(
            self.state.path, url, cells=cells, options=self.options, surround=_with_placement_to_hold
        )
        self.deployment.start()
        conf = new_config(transport_url=f"{url}/cloud")
        self._transports = Transports(conf)
        self._conductors = RpcClient(self._transports.get(conf.transport_url), TOPIC)

    def stop(self) -> None:
        self._transports.cleanup()
        self.deployment.kill()
        self._rabbit.__exit__(None, None, None)

    def run_move(self, conductor: str, move: Operation) -> None:
        """Sends this conductor a move, and no other one."""
        self._conductors.cast(context_of(move), "run_move", server=conductor, move_id=move.id)

    def pass_turn(self) -> None:
        """Of the two conductors, which are called in turn, the other one is called next."""
        self._conductors.cast(admin_context(), "run_move", move_id=NOBODY)

    def rearm(self, rules: dict[str, Any]) -> None:
        """From now on these faults; what happened before is still known."""
        new = self.faults_file.with_suffix(".new")
        new.write_text(yaml.safe_dump(rules))
        new.replace(self.faults_file)

    def lost(self, conductor: str) -> set[str]:
        """The moves of which this conductor knows that another has them."""
        mark = " is no longer worked on here"
        lines = [line for line in self.deployment.processes[conductor].log.splitlines() if mark in line]
        return {line.split(mark)[0].rsplit(" ", 1)[1] for line in lines}

    def kill_host(self, host: str) -> None:
        self.deployment.processes[host].kill()
        self.switch_off(host)
        self.force_down(host, True)

    def revive_host(self, host: str) -> None:
        self.deployment.restart(host).wait_ready()
        self.force_down(host, False)

    def is_idle(self) -> bool:
        """Nobody can look into its processes."""
        return True

    def double_starts(self) -> list[str]:
        found = []
        for host in self.hosts:
            lines = self.deployment.processes[host].log.splitlines()
            marks = [line for line in lines if "while another host runs it" in line]
            found += [line.split("Guest ")[1].split()[0] for line in marks]
        return found


def _with_placement_to_hold(deployment: Deployment) -> None:
    """devcloud, whose Placement can be held in the middle of a write."""
    deployment._kinds["devcloud"] = HalfwayDevcloud
    deployment._start_devcloud()

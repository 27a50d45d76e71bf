"""What tests of moves share: a whole cloud, driven through its REST API with openstacksdk, as users drive it.

It is an embedded one, or, with ``--cloud FILE``, one that runs elsewhere (`deployed_cloud`). ``cloud.parts`` is either: tests
that look behind the API use it for what both have, and are skipped by URL if they reach for what only one process has.

- ``cloud``: `Cloud`, one for each test module: two cells with two simulated hosts each, real Placement, devcloud around it.
- ``cloud.member``, ``cloud.admin``: openstacksdk connections. ``cloud.boot(...)`` makes an ACTIVE server on gen1 (cell1).
- ``cloud.wait(server, "VERIFY_RESIZE")`` waits for a status and fails on any other end state.
- ``cloud.settle()`` waits until no move is under way. ``cloud.leftovers(server)`` lists what a cell still holds of a server.
- ``cloud.reality(server)``: what is really there of a server, everywhere: compare two of them.
- ``cloud.fail(...)``: a rule for devcloud's fault injection; ``cloud.lose(...)``: an RPC that never arrives, or whose answer
  does not. Faults, and options set with ``cloud.option``, are taken back after each test.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import openstack
import pytest
from deployed_cloud import DeployedCloud, refuse

from causeway import roles
from causeway.conductor.service import ConductorService
from causeway.devcloud import Fault
from causeway.embedded.cloud import EmbeddedCloud
from causeway.errors import GuestFailed
from causeway.model import operations
from causeway.model.instance import Instance, InstanceFault
from causeway.model.moves import Move
from causeway.rpc.transport import Outgoing, Verdict
from causeway.store.api import journal
from causeway.store.cell import actions, copies, instances
from causeway.virt.simulated import SimulatedDriver

PATIENCE, PATIENCE_BY_URL = 30.0, 120.0


class Cloud:
    """A cloud and its users."""

    def __init__(self, parts: EmbeddedCloud | DeployedCloud) -> None:
        # What one has and the other has not skips a test when it is reached for.
        self.parts: Any = parts
        self.by_url = isinstance(parts, DeployedCloud)
        # What options were, before a test changed them.
        self._options: list[tuple[str, str | None, Any]] = []
        # Fault injection listens there, if the cloud has it.
        self._on_send = None if self.by_url else self.parts.around.transports.on_send
        self._patches = pytest.MonkeyPatch()
        self.member = self.connection("demo")
        self.admin = self.connection("admin", project="demo")
        self.image_id: str = self.member.image.find_image("demo").id
        self.network_id: str = self.member.network.find_network("demo-net").id

    @property
    def embedded(self) -> EmbeddedCloud:
        """For what only the process of an embedded cloud has: skips the test by URL."""
        if self.by_url:
            refuse("reaches into the process of an embedded cloud")
        found: EmbeddedCloud = self.parts
        return found

    def needs_devcloud(self, why: str) -> None:
        """Skips the test beside the real services."""
        if self.by_url and not self.parts.has_devcloud:
            refuse(f"{why}: needs devcloud")

    def needs_network_extension(self, alias: str) -> None:
        """Skips the test if the network service does not have it."""
        if self.member.network.find_extension(alias) is None:
            refuse(f"the network service has no {alias}")

    def connection(self, user: str, project: str | None = None) -> Any:
        if self.by_url:
            auth, region = self.parts.auth(user, project), self.parts.region()
        else:
            account, region = self.parts.accounts[user], "RegionOne"
            auth = {
                "auth_url": self.parts.accounts.auth_url,
                "username": account.username,
                "password": account.password,
                "project_name": project or account.project_name,
                "user_domain_id": "default",
                "project_domain_id": "default",
            }
        return openstack.connect(
            auth=auth,
            region_name=region,
            compute_api_version="2",
            compute_default_microversion="2.96",
            block_storage_default_microversion="3.70",
            load_yaml_config=False,
            load_envvars=False,
        )

    # servers

    def boot(self, name: str = "server", flavor: str = "gen1.small", **fields: Any) -> Any:
        """An ACTIVE server; with the demo image and one port on demo-net unless told otherwise."""
        given = {"image_id": self.image_id, "networks": [{"uuid": self.network_id}], **fields}
        server = self.member.compute.create_server(name=name, flavor_id=flavor, **given)
        return self.wait(server, "ACTIVE")

    def show(self, server: Any) -> Any:
        return self.admin.compute.get_server(server.id)

    def wait(self, server: Any, status: str) -> Any:
        """The server when it has a status and no task; fails at once if it comes to ERROR instead."""
        found = until(
            lambda: self.show(server),
            lambda found: found.status in (status, "ERROR") and found.task_state is None,
            f"server {server.id} to become {status}",
        )
        assert found.status == status, f"{found.status}: {found.fault}"
        return found

    def resized(self, server: Any, flavor: str = "gen2.small") -> Any:
        """Resizes a server and waits for VERIFY_RESIZE, and for the end of its move: only then may a test write to its record."""
        self.member.compute.resize_server(server.id, flavor)
        found = self.wait(server, "VERIFY_RESIZE")
        active = partial(journal.active_of_server, self.parts.api_database, server.id)
        until(active, lambda move: move is None, f"the resize of {server.id} to end")
        return found

    def failed(self, server: Any, status: str = "ACTIVE") -> Any:
        """The server when its newest migration has failed and it was given back."""
        until(lambda: self.migration(server), lambda found: found.status == "error", "the migration to fail")
        return self.wait(server, status)

    def confirmed(self, server: Any) -> Any:
        self.member.compute.confirm_server_resize(server.id)
        found = until(
            lambda: self.show(server),
            lambda found: found.status in ("ACTIVE", "SHUTOFF", "ERROR"),
            f"the resize of {server.id} to be confirmed",
        )
        self.settle()
        return found

    def reverted(self, server: Any) -> Any:
        self.member.compute.revert_server_resize(server.id)
        found = until(
            lambda: self.show(server),
            lambda found: found.status in ("ACTIVE", "SHUTOFF", "ERROR"),
            f"the resize of {server.id} to be reverted",
        )
        self.settle()
        return found

    def moves(self, server: Any) -> list[Move]:
        """What the journal has of a server, oldest first, but for its build."""
        found = journal.of_server(self.parts.api_database, server.id)
        return [move for move in found if move.recipe != operations.BUILD]

    def settle(self) -> None:
        """Waits until no move is under way."""
        until(lambda: journal.unfinished(self.parts.api_database), lambda moves: not moves, "all moves to end")

    def flavor(self, name: str, *, gen: int | None = None, **fields: Any) -> str:
        """The id of a flavor that is made if it is not there; tied to a generation of hosts if ``gen`` says so."""
        if self.admin.compute.find_flavor(name) is None:
            given = {"vcpus": 1, "ram": 128, "disk": 1, **fields}
            made = self.admin.compute.create_flavor(name=name, id=name, **given)
            if gen is not None:
                specs = {"aggregate_instance_extra_specs:gen": str(gen)}
                self.admin.compute.create_flavor_extra_specs(made, specs)
        return name

    # volumes

    def volume(self, **fields: Any) -> Any:
        """An available volume of 1 GiB."""
        volume = self.member.block_storage.create_volume(**{"size": 1, "name": "data", **fields})
        made = self.volume_becomes(volume, "available")
        if self.by_url and made.status == "error" and "volume_type" in fields:
            # Cinder's NFS driver shares no volume between servers.
            refuse(f"no back end of the volume service makes a volume of type {fields['volume_type']}")
        return made

    def volume_becomes(self, volume: Any, status: str) -> Any:
        return until(
            lambda: self.member.block_storage.get_volume(volume.id),
            lambda found: found.status in (status, "error"),
            f"volume {volume.id} to become {status}",
        )

    def volume_goes(self, volume: Any) -> None:
        """It is being deleted: the volume service does that by itself, in its time."""
        until(
            lambda: self.member.block_storage.find_volume(volume.id),
            lambda found: found is None,
            f"volume {volume.id} to go",
        )

    def boot_from_volume(self, name: str = "server", **fields: Any) -> Any:
        """An ACTIVE server whose root disk is a new volume made from the demo image."""
        root = {
            "boot_index": 0,
            "source_type": "image",
            "destination_type": "volume",
            "uuid": self.image_id,
            "volume_size": 1,
            "delete_on_termination": True,
        }
        server = self.member.compute.create_server(
            name=name,
            **{
                "flavor_id": "gen1.small",
                "networks": [{"uuid": self.network_id}],
                "block_device_mapping": [root],
                **fields,
            },
        )
        return self.wait(server, "ACTIVE")

    def attach(self, server: Any, volume: Any, **fields: Any) -> None:
        self.member.compute.create_volume_attachment(server.id, volume_id=volume.id, **fields)

    def detach(self, server: Any, volume: Any) -> None:
        self.member.compute.delete_volume_attachment(server.id, volume.id)
        until(
            lambda: [found.volume_id for found in self.member.compute.volume_attachments(server.id)],
            lambda left: volume.id not in left,
            f"volume {volume.id} to be detached",
        )

    # history

    def migration(self, server: Any) -> Any:
        """The server's newest migration."""
        return next(iter(self.admin.compute.migrations(instance_uuid=server.id)))

    def actions(self, server: Any) -> list[str]:
        """The names of the server's actions, oldest first."""
        return [action.action for action in self.admin.compute.server_actions(server.id)][::-1]

    def action(self, server: Any, name: str) -> Any:
        """The newest action of a name, with its events."""
        found = next(each for each in self.admin.compute.server_actions(server.id) if each.action == name)
        return self.admin.compute.get_server_action(found.request_id, server.id)

    def events(self, server: Any, name: str) -> list[tuple[str, str]]:
        """(event, result) of the newest action of a name, oldest first."""
        return [(event["event"], event["result"]) for event in self.action(server, name).events[::-1]]

    def faults(self, server: Any, cell: str = "cell1") -> list[InstanceFault]:
        with self.cell(cell).read() as connection:
            return actions.faults_in(connection, server.id)

    # what is really there

    def record(self, server: Any, cell: str) -> Instance:
        """The server's record in a cell, whether it is shown or hidden."""
        return instances.get(self.cell(cell), server.id)

    def ports(self, server: Any) -> dict[str, Any]:
        """port -> its status, its host, and host -> status of all its bindings."""
        found = {}
        for port in self.admin.network.ports(device_id=server.id):
            answer = self.admin.network.get(f"/ports/{port.id}/bindings").json()["bindings"]
            found[port.id] = (port.status, port.binding_host_id, {each["host"]: each["status"] for each in answer})
        return found

    def bindings_between(self, server: Any, source: str, target: str) -> dict[str, str]:
        """What the bindings of a server's port have to be while its move waits for confirm or revert.

        Neutron's Open vSwitch agents keep a port down while another host has a binding, so there the target's is alone.
        """
        (port,) = self.admin.network.ports(device_id=server.id)
        details = self.admin.network.get(f"/ports/{port.id}/bindings").json()["bindings"]
        alone = any("ovs_hybrid_plug" in (each["vif_details"] or {}) for each in details if each["host"] == target)
        return {target: "ACTIVE"} | ({} if alone else {source: "INACTIVE"})

    def interfaces(self, server: Any) -> list[Any]:
        """The server's interfaces in their order, as the Compute API lists them."""
        return list(self.member.compute.server_interfaces(server.id))

    def reality(self, server: Any) -> dict[str, Any]:
        """Everything that a move touches. After a failed one it is what it was before."""
        shown = self.show(server)
        if self.by_url and shown.status == "ACTIVE":
            # The real network service hears of a plugged port from its agents, a moment later.
            until(
                lambda: self.ports(server),
                lambda ports: all(status == "ACTIVE" for status, _host, _bindings in ports.values()),
                f"the ports of {server.id} to be ACTIVE",
            )
        attachments = self.attachments(server)
        return {
            "shown": (shown.status, shown.task_state, shown.power_state, shown.compute_host, shown.availability_zone),
            "flavor": shown.flavor["original_name"],
            "cells with records": [cell for cell in ("cell1", "cell2") if copies.exists(self.cell(cell), server.id)],
            "on hosts": self.hosts_of(server),
            "runs on": self.driver(shown.compute_host).running_anywhere(server.id),
            "ports": self.ports(server),
            "volumes": {
                each["volume_id"]: self.admin.block_storage.get_volume(each["volume_id"]).status for each in attachments
            },
            "attachments": sorted(
                (each["volume_id"], each["status"], (each.get("connection_info") or {}).get("host", ""))
                for each in attachments
            ),
            "allocations": self.allocations(server.id),
            "images": self.temporary_images(),
            "transfers": sorted(
                path.name for path in self.parts.state.path.glob("hosts/*/_base/*part*") if server.id in path.name
            ),
        }

    def temporary_images(self) -> list[str]:
        return [image.name for image in self.admin.image.images() if image.name.endswith("-resize-temp")]

    def driver(self, host: str) -> SimulatedDriver:
        driver = self.parts.driver(host) if self.by_url else self.parts.computes[host].host.driver
        assert isinstance(driver, SimulatedDriver)
        return driver

    def cell(self, name: str) -> Any:
        """The database of a cell."""
        mapping = next(cell for cell in self.parts.cells.mappings() if cell.name == name)
        return self.parts.cells.database(mapping.uuid)

    def hosts_of(self, server: Any) -> dict[str, str]:
        """host -> what it holds of the server: "guest", "disks" or "stashed"."""
        found = {}
        for host in self.parts.computes:
            facts = self.driver(host).inspect(server.id)
            if facts.power_state is not None:
                found[host] = "guest"
            elif facts.has_disks:
                found[host] = "disks"
            if facts.has_stashed_disks:
                found[host] = found.get(host, "") + "stashed"
        return found

    def leftovers(self, server: Any, cell: str) -> list[str]:
        """What a cell, and the services around for it, still hold of a server. Empty: nothing."""
        found = []
        if copies.exists(self.cell(cell), server.id):
            found.append(f"records in {cell}")
        found += [f"{what} on {host}" for host, what in self.hosts_of(server).items() if host.startswith(cell)]
        for port in self.admin.network.ports(device_id=server.id):
            answer = self.admin.network.get(f"/ports/{port.id}/bindings")
            found += [
                f"binding of port {port.id} for {binding['host']}"
                for binding in answer.json()["bindings"]
                if binding["host"].startswith(cell)
            ]
        return found + self.temporary_images()

    def allocations(self, consumer: str) -> dict[str, Any]:
        """What a consumer holds in Placement, by host name."""
        placement = self.parts.around.placement
        names = {provider.uuid: provider.name for provider in placement.list_providers()}
        return {names[uuid]: amounts for uuid, amounts in placement.get_allocations(consumer).allocations.items()}

    def attachments(self, server: Any) -> list[dict[str, Any]]:
        """The volume service's attachments of a server."""
        answer = self.admin.block_storage.get("/attachments/detail", params={"all_tenants": "1"})
        return [found for found in answer.json()["attachments"] if found["instance"] == server.id]

    # faults

    def fail(self, action: str, path: str, **fields: Any) -> None:
        """Adds a rule to devcloud's fault injection."""
        fault = Fault(action, path, **fields)
        if self.by_url:
            self.parts.fail(fault)
        else:
            self.parts.devcloud.faults.add(fault)

    def lose(self, method: str | tuple[str, ...], verdict: Verdict = Verdict.LOSE_REQUEST, times: int = 1) -> None:
        """The next ``times`` calls of an RPC method (or of several) are lost, or their answers."""
        left = [verdict] * times
        methods = (method,) if isinstance(method, str) else method
        if self.by_url:
            self.parts.lose(methods, verdict, times)
            return

        def on_send(message: Outgoing) -> Verdict:
            return left.pop() if message.method in methods and left else Verdict.DELIVER

        self.parts.around.transports.on_send = on_send

    @contextmanager
    def held(self, method: str) -> Iterator[threading.Event]:
        """Within the block the first call of an RPC method stays where it is; the event is set when it was made."""
        reached, opened, left = threading.Event(), threading.Event(), [method]

        def on_send(message: Outgoing) -> Verdict:
            if message.method == method and left:
                left.pop()
                reached.set()
                assert opened.wait(PATIENCE)
            return Verdict.DELIVER

        transports = self.parts.around.transports
        before, transports.on_send = transports.on_send, on_send
        try:
            yield reached
        finally:
            opened.set()
            transports.on_send = before

    def break_driver(self, hosts: list[str], method: str, times: int = 1000) -> None:
        """The hypervisors of hosts fail in a method, so often."""
        if self.by_url:
            self.parts.break_driver(hosts, method, times)
            return
        left = [None] * times
        for host in hosts:
            driver = self.driver(host)
            works = getattr(driver, method)

            def broken(*args: Any, works: Any = works, **kwargs: Any) -> Any:
                if left:
                    left.pop()
                    raise GuestFailed(f"The hypervisor broke in {method}.")
                return works(*args, **kwargs)

            self._patches.setattr(driver, method, broken)

    def damage_offers(self) -> None:
        """What hosts offer to others is not what they said that it is."""
        for compute in self.parts.computes.values():
            make = compute.host.offers.make

            def damaged(*args: Any, make: Any = make, **kwargs: Any) -> Any:
                manifest = make(*args, **kwargs)
                for offered in manifest.disks:
                    offered.sha256 = "0" * 64
                return manifest

            self._patches.setattr(compute.host.offers, "make", damaged)

    def report(self, *hosts: str) -> None:
        """Hosts (none given: all) report now what they have and what runs on them; others report soon by themselves."""
        names = hosts or tuple(self.parts.computes)
        if not self.by_url:
            for name in names:
                self.parts.computes[name]._reporter.report_alive()
            return

        def reported() -> dict[str, str]:
            return {each.host: each.updated_at for each in self.admin.compute.services() if each.host in names}

        for _whole in range(2):
            # The report that is under way may have begun before.
            before = reported()
            until(reported, lambda seen, before=before: not before.items() & seen.items(), "hosts to report")

    def option(self, name: str, value: Any, group: str | None = None) -> None:
        if self.by_url:
            self.parts.needs(name, value, group)
            return
        conf = self.parts.conf
        self._options.append((name, group, (conf[group] if group else conf)[name]))
        conf.set_override(name, value, group=group)

    def without_patience(self) -> None:
        """What fails is undone at once and for good, also what passes."""
        self.option("patience", 0.0, "moves")
        self.option("patience_while_off", 0.0, "moves")
        self.option("whole_tries", 1, "moves")

    def clean(self) -> None:
        """Deletes every server."""
        for server in list(self.admin.compute.servers(all_projects=True)):
            self.admin.compute.delete_server(server.id)
        until(lambda: list(self.admin.compute.servers(all_projects=True)), lambda left: not left, "all servers to go")

    def heal(self) -> None:
        """Takes back every fault and option."""
        self._patches.undo()
        if self.by_url:
            self.parts.heal()
            return
        devcloud = self.parts.devcloud
        devcloud.faults.clear()
        devcloud.plug_delay, devcloud.unpluggable_hosts = 0.0, set()
        self.parts.around.transports.on_send = self._on_send
        while self._options:
            name, group, before = self._options.pop()
            self.parts.conf.set_override(name, before, group=group)


def until(look: Callable[[], Any], good: Callable[[Any], bool], what: str) -> Any:
    """What ``look`` sees when it is good. The API has nothing to wait on, so this asks again and again."""
    end = time.monotonic() + (PATIENCE_BY_URL if DeployedCloud.in_use else PATIENCE)
    while True:
        seen = look()
        if good(seen):
            return seen
        assert time.monotonic() < end, f"waited in vain for {what}; last seen: {seen}"
        time.sleep(0.1 if DeployedCloud.in_use else 0.01)


@contextmanager
def another_conductor(cloud: Cloud) -> Iterator[ConductorService]:
    """Two share the work."""
    parts = cloud.parts
    conductor = roles.conductor(parts.around, parts.api_database, parts.cells, "conductor2", of_cells=[])
    conductor.start()
    conductor.recover()
    yield conductor
    conductor.stop()

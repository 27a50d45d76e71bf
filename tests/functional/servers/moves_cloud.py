"""What tests of moves share: a whole cloud, driven through its REST API with openstacksdk, as users drive it.

It is an embedded one, or, with ``--cloud FILE``, one that runs elsewhere (`deployed_cloud`). ``cloud.parts`` is either: tests
that look behind the API use it for what both have, and are skipped by URL if they reach for what only one process has.

- ``cloud``: `Cloud`, one for each test module: two cells with two simulated hosts each, real Placement, devcloud around it.
- ``cloud.member``, ``cloud.admin``: openstacksdk connections. ``cloud.boot(...)`` makes an ACTIVE server on gen1 (cell1).
- ``cloud.wait(server, "VERIFY_RESIZE")`` waits for a status and fails on any other end state.
- ``cloud.settle()`` waits until no move is under way. ``cloud.cleanups(server, cell)``: what a cell still holds of one.
- ``cloud.reality(server)``: what is really there of a server, everywhere: compare two of them.
- ``cloud.fail(...)``: a rule for devcloud's fault injection; ``cloud.lose(...)``: an RPC that never arrives, or whose answer
  does not. Faults, and options set with ``cloud.option``, are undone after each test.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import openstack
from openstack import exceptions

from causeway.conductor.service import ConductorService
from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.instance import InstanceFault
from causeway.model.operations import Operation
from causeway.moves.recipes import WITH_GUEST
from causeway.roles.conductor import make_conductor
from causeway.store.api import journal
from causeway.store.cell import actions
from tests.functional.servers import sdk_memory
from tests.functional.servers.cloud_faults import Faults
from tests.functional.servers.deployed_cloud import DeployedCloud
from tests.functional.servers.fault_rules import refuse
from tests.functional.servers.patience import PATIENCE, until

__all__ = ["PATIENCE", "Cloud", "another_conductor", "until"]

sdk_memory.remember()


class Cloud(Faults):
    """A cloud and its users: what they do and see. What they can't see is in `cloud_reality`, what breaks in `cloud_faults`."""

    def __init__(self, parts: EmbeddedCloud | DeployedCloud) -> None:
        super().__init__(parts)
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
        connection = openstack.connect(
            auth=auth,
            region_name=region,
            compute_api_version="2",
            compute_default_microversion="2.96",
            block_storage_default_microversion="3.70",
            load_yaml_config=False,
            load_envvars=False,
        )
        # Each call would read the environment for proxies and copy the whole catalog: a quarter of what a call takes.
        connection.session.session.trust_env = False
        for service in (connection.compute, connection.network):
            service.endpoint_override = service.get_endpoint()
        return connection

    # servers

    def boot(self, name: str = "server", flavor: str = "gen1.small", **fields: Any) -> Any:
        """An ACTIVE server; with the demo image and one port on demo-net unless an argument says otherwise."""
        given = {"image_id": self.image_id, "networks": [{"uuid": self.network_id}], **fields}
        server = self.member.compute.create_server(name=name, flavor_id=flavor, **given)
        return self.wait(server, "ACTIVE")

    def wait(self, server: Any, status: str) -> Any:
        """The server when it has a status and no task; fails at once if it comes to ERROR instead."""
        seen = until(
            lambda: self.json_of(server),
            lambda found: found["status"] in (status, "ERROR") and found["OS-EXT-STS:task_state"] is None,
            f"server {server.id} to become {status}",
            partial(self.trace_of, server),
        )
        found = self.resource_of(seen)
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
        """The server when its newest migration has failed and it was restored."""
        until(lambda: self.migration(server), lambda found: found.status == "error", "the migration to fail")
        return self.wait(server, status)

    def confirmed(self, server: Any) -> Any:
        self.member.compute.confirm_server_resize(server.id)
        seen = until(
            lambda: self.json_of(server),
            lambda found: found["status"] in ("ACTIVE", "SHUTOFF", "ERROR"),
            f"the resize of {server.id} to be confirmed",
            partial(self.trace_of, server),
        )
        self.settle()
        return self.resource_of(seen)

    def reverted(self, server: Any) -> Any:
        self.member.compute.revert_server_resize(server.id)
        seen = until(
            lambda: self.json_of(server),
            lambda found: found["status"] in ("ACTIVE", "SHUTOFF", "ERROR"),
            f"the resize of {server.id} to be reverted",
            partial(self.trace_of, server),
        )
        self.settle()
        return self.resource_of(seen)

    def moves(self, server: Any) -> list[Operation]:
        """The moves of a server, oldest first."""
        found = journal.of_server(self.parts.api_database, server.id)
        return [move for move in found if move.recipe in WITH_GUEST]

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

    @contextmanager
    def own_volume(self) -> Iterator[Any]:
        """A volume of the user's, which outlives every server."""
        volume = self.volume()
        yield volume
        self.volume_becomes(volume, "available")
        self.member.block_storage.delete_volume(volume)
        self.volume_goes(volume)

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

    def clean(self) -> None:
        """Deletes every server."""
        if not (found := self._server_ids()):
            return
        for server_id in found:
            self.admin.compute.delete_server(server_id)
        until(self._server_ids, lambda left: not left, "all servers to go", self.trace)

    def _server_ids(self) -> list[str]:
        """Of every project; without the SDK, which needs longer to make its resources than the cloud to answer."""
        answer = self.admin.compute.get("/servers?all_tenants=True")
        exceptions.raise_from_response(answer)
        return [server["id"] for server in answer.json()["servers"]]


@contextmanager
def another_conductor(cloud: Cloud) -> Iterator[ConductorService]:
    """Two share the work."""
    parts = cloud.embedded
    conductor = make_conductor(parts.around, parts.api_database, parts.cells, "conductor2", of_cells=[])
    conductor.start()
    conductor.recover()
    yield conductor
    conductor.stop()

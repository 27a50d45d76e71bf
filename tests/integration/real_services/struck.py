"""What asks for the requests in which services are killed: how it is prepared and asked for, and how it must end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import openstack

from causeway.store.api import journal
from tests.functional.processes.deployment import CONDUCTORS
from tests.functional.processes.own_process import until
from tests.integration.real_services.faults_of_parts import PATIENCE, asked, audit_of, other_cell, settled
from tests.integration.real_services.sites import Site
from tests.integration.real_services.strikes import Scene

FORWARD, ROLLED_BACK, STARTED_AGAIN = "forward", "rolled back", "started again"


class Operation:
    """``prepare`` makes what it is asked of; ``ask`` returns when it is accepted, or refused; ``end`` says how it ended."""

    def prepare(self, site: Site) -> Scene:
        cloud = site.cloud
        server = with_volume(site)
        source = cloud.show(server).compute_host
        return Scene(site, server, source, other_cell(cloud, source))

    def ask(self, scene: Scene) -> None:
        raise NotImplementedError

    def end(self, scene: Scene) -> str:
        """Raises AssertionError if the server is not as it must be."""
        found = settled(scene)
        assert found.status == "ACTIVE", f"{found.status}: {found.fault}"
        runs_at(scene, found.compute_host)
        return FORWARD

    def destroy(self, scene: Scene) -> None:
        """All that was made for it."""
        cloud = scene.cloud
        volumes = [each["id"] for each in cloud.show(scene.server).attached_volumes]
        cloud.member.compute.delete_server(scene.server.id)
        cloud.member.compute.wait_for_delete(scene.server, wait=60)
        for volume in volumes:
            delete_volume(scene.site, volume)


class Migrate(Operation):
    def ask(self, scene: Scene) -> None:
        until(lambda: asked(scene), bool, "the move to be accepted")

    def end(self, scene: Scene) -> str:
        found = settled(scene)
        assert found.status in ("ACTIVE", "VERIFY_RESIZE"), f"{found.status}: {found.fault}"
        is_forward = found.status == "VERIFY_RESIZE"
        runs_at(scene, scene.target if is_forward else scene.source)
        return FORWARD if is_forward else ROLLED_BACK


class MigrateWithoutTokens(Migrate):
    """Nobody who works on the move has a token yet, and Keystone remembers nothing."""

    def prepare(self, site: Site) -> Scene:
        scene = super().prepare(site)
        services, cloud = site.services, site.cloud
        assert services is not None
        names = ("scheduler", *CONDUCTORS)
        for name in names:
            cloud.processes[name].kill()
        services.machine.kill("keystone")
        services.start_api("keystone")
        services.await_api("keystone")
        for name in names:
            cloud.restart(name)
        for name in names:
            cloud.processes[name].wait_ready()
        return scene


class Confirm(Operation):
    def prepare(self, site: Site) -> Scene:
        scene = super().prepare(site)
        until(lambda: asked(scene), bool, "the move to be accepted")
        site.cloud.wait(scene.server, "VERIFY_RESIZE")
        return scene

    def ask(self, scene: Scene) -> None:
        scene.cloud.member.compute.confirm_server_resize(scene.server.id)

    def end(self, scene: Scene) -> str:
        super().end(scene)
        assert scene.cloud.show(scene.server).compute_host == scene.target
        return FORWARD


class Revert(Confirm):
    def ask(self, scene: Scene) -> None:
        scene.cloud.member.compute.revert_server_resize(scene.server.id)

    def end(self, scene: Scene) -> str:
        Operation.end(self, scene)
        assert scene.cloud.show(scene.server).compute_host == scene.source
        return FORWARD


class Unshelve(Operation):
    def prepare(self, site: Site) -> Scene:
        scene = super().prepare(site)
        site.cloud.member.compute.shelve_server(scene.server.id)
        # At once, or when the option says so.
        found = site.cloud.wait(scene.server, "SHELVED", "SHELVED_OFFLOADED")
        if found.status == "SHELVED":
            site.cloud.admin.compute.shelve_offload_server(scene.server.id)
        site.cloud.wait(scene.server, "SHELVED_OFFLOADED")
        return scene

    def ask(self, scene: Scene) -> None:
        scene.cloud.member.compute.unshelve_server(scene.server.id)


class Create(Operation):
    def prepare(self, site: Site) -> Scene:
        return Scene(site, None, "", "")

    def ask(self, scene: Scene) -> None:
        scene.server = scene.cloud.create(scene.cloud._image)


class Delete(Operation):
    def prepare(self, site: Site) -> Scene:
        scene = super().prepare(site)
        self.volumes = [each["id"] for each in site.cloud.show(scene.server).attached_volumes]
        return scene

    def ask(self, scene: Scene) -> None:
        scene.cloud.member.compute.delete_server(scene.server.id)

    def end(self, scene: Scene) -> str:
        cloud = scene.cloud
        cloud.member.compute.wait_for_delete(scene.server, wait=PATIENCE)
        until(lambda: journal.unfinished(cloud.api_database), lambda left: not left, "all operations to end")
        assert cloud.running_on(scene.server) == []
        scene.server = None
        return FORWARD

    def destroy(self, scene: Scene) -> None:
        for volume in self.volumes:
            delete_volume(scene.site, volume)


class Attach(Operation):
    """Its user waits for the answer; one who gets none, or a refusal, finds the server as it was and asks again."""

    def prepare(self, site: Site) -> Scene:
        scene = super().prepare(site)
        self.volume = new_volume(site)
        return scene

    def ask(self, scene: Scene) -> None:
        with suppress(openstack.exceptions.HttpException):
            scene.cloud.member.compute.create_volume_attachment(scene.server, volumeId=self.volume)

    def end(self, scene: Scene) -> str:
        super().end(scene)
        if self._has(scene):
            is_volume(scene.site, self.volume, "in-use")
            return FORWARD
        is_volume(scene.site, self.volume, "available")
        until(lambda: self._asked_again(scene), bool, "the volume to be attached when it is asked for again")
        return ROLLED_BACK

    def _asked_again(self, scene: Scene) -> bool:
        self.ask(scene)
        return self._has(scene)

    def _has(self, scene: Scene) -> bool:
        return self.volume in [each["id"] for each in scene.cloud.show(scene.server).attached_volumes]


class StartHost(Operation):
    """A host that the cloud does not know yet. ``made``: how many there were, each with a name of its own."""

    made = 0

    def prepare(self, site: Site) -> Scene:
        StartHost.made += 1
        self.name = f"new-host{StartHost.made}"
        return Scene(site, None, self.name, "")

    def ask(self, scene: Scene) -> None:
        scene.cloud.add_host(self.name, next(iter(scene.cloud.hosts.values())))

    def end(self, scene: Scene) -> str:
        cloud, process = scene.cloud, scene.cloud.processes[self.name]
        until(lambda: process.has_ended or "ready: " in process.log, bool, "the compute to start, or to end")
        outcome = FORWARD
        if process.has_ended:
            # As systemd does.
            outcome = STARTED_AGAIN
            cloud.restart(self.name).wait_ready()
        until(lambda: self._services(scene), lambda found: [each.state for each in found] == ["up"], "it to be up")
        return outcome

    def destroy(self, scene: Scene) -> None:
        cloud = scene.cloud
        cloud.remove_host(self.name)
        (service,) = self._services(scene)
        until(lambda: self._is_deleted(scene, service), bool, "its service to be deleted")

    def _services(self, scene: Scene) -> list[Any]:
        return list(scene.cloud.admin.compute.services(host=self.name, binary="nova-compute"))

    def _is_deleted(self, scene: Scene, service: Any) -> bool:
        with suppress(openstack.exceptions.ConflictException):
            scene.cloud.admin.compute.delete_service(service.id)
        return not self._services(scene)


OPERATIONS: dict[str, Callable[[], Operation]] = {
    "migrate": Migrate,
    "migrate without tokens": MigrateWithoutTokens,
    "confirm": Confirm,
    "revert": Revert,
    "unshelve": Unshelve,
    "create": Create,
    "delete": Delete,
    "attach": Attach,
    "start host": StartHost,
}


def runs_at(scene: Scene, host: str) -> None:
    """Once, there, and nobody disagrees."""
    cloud = scene.cloud
    assert cloud.running_on(scene.server) == [host]
    assert cloud.show(scene.server).compute_host == host
    until(lambda: audit_of(cloud), lambda seen: not seen, "a clean audit")


def with_volume(site: Site) -> Any:
    """An ACTIVE server with a volume."""
    cloud = site.cloud
    server = cloud.boot()
    volume = new_volume(site)
    cloud.member.compute.create_volume_attachment(server, volumeId=volume)
    is_volume(site, volume, "in-use")
    return server


def new_volume(site: Site) -> str:
    storage = site.cloud.member.block_storage
    volume = storage.create_volume(size=1, name="data")
    storage.wait_for_status(volume, "available", wait=60)
    return str(volume.id)


def delete_volume(site: Site, volume: str) -> None:
    is_volume(site, volume, "available")
    storage = site.cloud.member.block_storage
    storage.delete_volume(volume)
    until(lambda: storage.find_volume(volume), lambda found: found is None, "the volume to be deleted")


def is_volume(site: Site, volume: str, status: str) -> None:
    storage: Callable[[str], Any] = site.cloud.member.block_storage.get_volume
    until(lambda: storage(volume).status, lambda seen: seen == status, f"{status} volume")

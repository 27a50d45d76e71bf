"""What tests of live migrations share: a cloud whose guests have something in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

from causeway.virt.simulated.live_transfer import BUSY
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.moves_cloud import PATIENCE, until

__all__ = ["PATIENCE", "LiveCloud", "until"]

LATEST = "2.96"
# Options of [simulated]: all hypervisors reach one another.
ONE_NETWORK = {"live_networks": {f"cell{cell}-host{host}": "one" for cell in (1, 2) for host in (1, 2)}}


class LiveCloud(AuditedCloud):
    def migrate_live(self, server: Any, *, version: str = LATEST, user: Any = None, **more: Any) -> Any:
        """The answer to os-migrateLive."""
        wanted: dict[str, Any] = {"host": None, "block_migration": "auto", **more}
        compute = (user or self.admin).compute
        return compute.post(f"/servers/{server.id}/action", json={"os-migrateLive": wanted}, microversion=version)

    def migrated(self, server: Any, **more: Any) -> Any:
        """The server after a live migration that was accepted; it may have failed."""
        answer = self.migrate_live(server, **more)
        assert answer.status_code == 202, answer.text
        return self.after(server)

    def after(self, server: Any) -> Any:
        """The server when its operation has ended."""
        until(
            lambda: self.json_of(server),
            lambda found: found["OS-EXT-STS:task_state"] is None,
            f"the live migration of {server.id}, now {self.migration(server).status}, to end",
            partial(self.trace_of, server),
        )
        self.settle()
        return self.show(server)

    def ordered(self, server: Any, action: str, event: str) -> None:
        """Waits until the history has an order to a hypervisor: who gave it may write that after the end of the move."""
        until(
            lambda: self.events(server, action),
            lambda events: events == [(event, "Success")],
            f"{event} in the history of {server.id}",
        )

    def becomes(self, server: Any, *statuses: str) -> Any:
        """The migration when it has one of these statuses."""
        return until(
            lambda: self.migration(server), lambda found: found.status in statuses, f"the migration to be {statuses}"
        )

    def host_of(self, server: Any) -> str:
        host: str = self.show(server).compute_host
        return host

    def other(self, host: str) -> str:
        return host[:-1] + ("2" if host.endswith("1") else "1")

    def remember(self, server: Any, text: str) -> list[str]:
        """Its guest keeps a line in memory; returns all that it has there."""
        driver = self.driver(self.host_of(server))
        driver.guest_remember(server.id, text)
        return driver.guest_memory(server.id)

    def memory(self, server: Any) -> list[str]:
        return self.driver(self.host_of(server)).guest_memory(server.id)

    def busy(self, server: Any) -> None:
        """Its guest changes its memory faster than it is copied."""
        self.remember(server, BUSY)

    def job_runs(self, server: Any) -> None:
        """The source's hypervisor is at it."""
        driver = self.driver(self.host_of(server))
        until(lambda: driver.live_progress(server.id), lambda found: found is not None, "the hypervisor to begin")

    def booted_on(self, host: str, name: str, flavor: str = "gen1.small") -> Any:
        """A new server on that host."""
        for _attempt in range(8):
            server = self.boot(name, flavor=flavor)
            if self.host_of(server) == host:
                return server
        raise AssertionError(f"no server on {host}")

    def end_what_hangs(self) -> None:
        """Ends what hangs, so that the next test begins with nothing under way."""
        for service in self.parts.computes.values():
            driver = service.host.driver
            for uuid in list(driver._jobs):
                driver.abort_live_migration(uuid)

    def check_left_nothing(self, server: Any, host: str) -> None:
        """The server is on a host, and nowhere else is anything of it."""
        assert self.host_of(server) == host
        assert self.hosts_of(server) == {host: "guest"}
        assert self.allocations(server.id).keys() & self.parts.computes.keys() == {host}
        assert self.allocations(self.uuid_of(self.migration(server))) == {}
        for name in self.parts.computes:
            driver = self.driver(name)
            assert not driver.double_starts
            assert not driver.files.incoming(server.id).exists()
        for port in self.admin.network.ports(device_id=server.id):
            assert port.binding_host_id == host
            assert "migrating_to" not in port.binding_profile
            bindings = self.admin.network.get(f"/ports/{port.id}/bindings").json()["bindings"]
            assert [(each["host"], each["status"]) for each in bindings] == [(host, "ACTIVE")]
        assert self.audit().disagreements == []

    def uuid_of(self, migration: Any) -> str:
        uuid: str = migration.uuid
        return uuid

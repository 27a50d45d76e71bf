"""A cloud whose hosts keep disks in one store, and a judge that looks into the store itself."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from causeway.moves.memory import MoveMemory
from causeway.virt.driver import ROOT_DISK
from causeway.virt.shared_disks.folder_store import FolderStore
from tests.functional.servers.audited_cloud import AuditedCloud

HOSTS = [f"cell{cell}-host{host}" for cell in (1, 2) for host in (1, 2)]
OPTIONS: dict[str, Any] = {"simulated": {"shared_stores": dict.fromkeys(HOSTS, "pool")}}


class SharedCloud(AuditedCloud):
    """``cloud.store``: the store, as somebody sees it who is no host."""

    @property
    def store(self) -> FolderStore:
        folder = self.embedded.state.path / "stores" / "pool"
        return FolderStore(folder, lambda _path: 0, lambda _name: [], lambda _users: None)

    def names(self, server: Any) -> list[str]:
        return [name for name in self.store.names() if name.startswith(server.id)]

    def with_disks(self, name: str = "shared", gen: int | None = 1) -> Any:
        """A server with three local disks, each with a line of its own. ``gen``: tied to hosts of this generation."""
        flavor = self.flavor(f"shared.disks.{gen}", gen=gen, disk=1, ephemeral=1, swap=64)
        server = self.boot(name, flavor=flavor)
        for device in ("vda", "vdb", "vdc"):
            self.write(server, f"written on {device}", device)
        return server

    def larger(self, gen: int, name: str = "larger") -> str:
        return self.flavor(f"shared.{name}.{gen}", gen=gen, vcpus=2, disk=2, ephemeral=1, swap=64)

    def write(self, server: Any, line: str, device: str = "vda") -> None:
        self.driver(self.host_of(server)).guest_write(server.id, line, device)

    def read(self, server: Any, device: str = "vda") -> list[str]:
        found: list[str] = self.driver(self.host_of(server)).guest_read(server.id, device)
        return found

    def host_of(self, server: Any) -> str:
        host: str = self.show(server).compute_host
        return host

    def bytes_moved(self, server: Any) -> int:
        """Bytes of disks that the newest move of the server has sent, directly or as images."""
        memory = msgspec.convert(self.moves(server)[-1].data, MoveMemory)
        return (memory.bytes_of_disks or 0) + (memory.warm.sent if memory.warm is not None else 0)

    def check_store(self, server: Any, *, put_aside: bool = False) -> None:
        """What the store has of the server is that of the host which has its guest, and nobody runs it twice."""
        host = self.host_of(server)
        for name in self.names(server):
            stored = self.store.find(name)
            assert stored is not None and stored.owner is not None
            assert stored.owner.split(" ")[0] == host, (name, stored)
            assert bool(stored.snapshots) is put_aside, (name, stored)
        assert f"{server.id}_{ROOT_DISK}" in self.names(server)
        for each in self.parts.computes:
            assert not self.driver(each).double_starts

    def check_clean(self, server: Any) -> None:
        """The server is where its records say, and the audit agrees."""
        self.settle()
        self.check_store(server)
        assert self.hosts_of(server) == {self.host_of(server): "guest"}
        report = self.audit()
        assert report.is_clean, json.dumps([str(each) for each in report.disagreements])

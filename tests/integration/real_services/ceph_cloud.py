"""An embedded cloud of real guests whose disks are in one real Ceph, of both cells."""

from __future__ import annotations

import json
import uuid as uuids
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from causeway.cli.demo.guest import GuestReport, last_report
from causeway.embedded.cloud import EmbeddedCloud
from causeway.moves.memory import MoveMemory
from causeway.roles.compute import make_compute
from causeway.virt.lab.drivers import LabDriver
from causeway.virt.lab.hosts import Lab
from causeway.virt.libvirt.storage.rbd_pool import CephPool
from tests.functional.live.live_cloud import LiveCloud
from tests.functional.processes.own_process import until
from tests.integration.real_services.ceph import Ceph, storage_network

#: of a network that nothing else on this machine has
ADDRESS = "10.96.30.254"
HOSTS = [f"cell{cell}-host{host}" for cell in (1, 2) for host in (1, 2)]
# Emulated guests on a busy machine.
BOOT_SECONDS = 240


class CephCloud(LiveCloud):
    """``ceph``: the cluster, for those who look at it as its administrator."""

    def __init__(self, embedded: EmbeddedCloud, ceph: Ceph, apart: Mapping[str, Ceph] | None = None) -> None:
        """``apart``: host -> its own cluster, if hosts do not share one."""
        super().__init__(embedded)
        self.ceph = ceph
        self.apart = apart or {}

    def images_of_all(self) -> dict[str, list[str]]:
        """Host -> the names of all disks in its cluster."""
        found = {host: ceph.run("rbd", "ls", "vms").split() for host, ceph in self.apart.items()}
        return {host: [name for name in names if not name.startswith("base_")] for host, names in found.items()}

    def owners_of_all(self, server: Any) -> set[str]:
        """The hosts that own a disk of the server, in any cluster."""
        found = set()
        for host, names in self.images_of_all().items():
            for name in (each for each in names if each.startswith(server.id)):
                owner = self.apart[host].run("rbd", "image-meta", "get", f"vms/{name}", "causeway.owner")
                found.add(owner.split()[1])
        return found

    def snapshots_of_all(self, server: Any) -> list[str]:
        return [
            snapshot
            for host, names in self.images_of_all().items()
            for name in names
            if name.startswith(server.id)
            for snapshot in self.apart[host].run("rbd", "snap", "ls", f"vms/{name}").splitlines()[1:]
        ]

    def said(self, server: Any, *, after_boot: int = 0) -> GuestReport:
        """What the guest said when it booted last; waits for a boot after the one with this number."""

        def look() -> GuestReport:
            answer = self.admin.compute.post(f"/servers/{server.id}/action", json={"os-getConsoleOutput": {}})
            return last_report(answer.json().get("output", "")) if answer.ok else GuestReport()

        return until(
            look, lambda found: found.ready and found.boot > after_boot, f"guest {server.id} to boot", BOOT_SECONDS
        )

    def libvirt(self, host: str) -> LabDriver:
        found = self.embedded.computes[host].host.driver
        assert isinstance(found, LabDriver)
        return found

    def images(self, server: Any) -> dict[str, tuple[str, list[str]]]:
        """Name -> (owner, snapshots) of each image in the pool that is the server's."""
        found = {}
        for name in self.ceph.run("rbd", "ls", "vms").split():
            if name.startswith(server.id):
                owner = self.ceph.run("rbd", "image-meta", "get", f"vms/{name}", "causeway.owner").strip()
                snapshots = self.ceph.run("rbd", "snap", "ls", f"vms/{name}").splitlines()[1:]
                found[name] = (owner.partition(" ")[2], [line.split()[1] for line in snapshots])
        return found

    def bytes_moved(self, server: Any) -> int:
        """Bytes of disks that the newest move of the server has sent, directly or as images."""
        memory = msgspec.convert(self.moves(server)[-1].data, MoveMemory)
        return (memory.bytes_of_disks or 0) + (memory.warm.sent if memory.warm is not None else 0)

    def size_of(self, name: str) -> int:
        """GiB."""
        return int(json.loads(self.ceph.run("rbd", "info", f"vms/{name}", "--format", "json"))["size"]) >> 30

    def qemu(self, server: Any, host: str) -> int:
        """The process of the server's guest on a host."""
        namespace = Path("/run/netns") / self.libvirt(host)._namespace
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                command = (path / "cmdline").read_bytes().decode(errors="replace")
                is_there = (path / "ns/net").stat().st_ino == namespace.stat().st_ino
                if "qemu-system" in command and server.id in command and is_there:
                    return int(path.name)
        raise AssertionError(f"no guest {server.id} on {host}")

    def force_down(self, host: str, down: bool) -> None:
        (service,) = self.admin.compute.services(host=host, binary="nova-compute")
        self.admin.compute.update_service_forced_down(service, forced=down)

    @contextmanager
    def dead(self, host: str) -> Iterator[None]:
        """Nobody hears of the host's compute any more, and an operator says that the host is off. Then it is back."""
        self.parts.computes[host].stop()
        self.force_down(host, True)
        try:
            yield
        finally:
            embedded = self.embedded
            cell = next(cell for cell in embedded.cells.mappings() if cell.name == host[:5])
            driver = embedded.hosts.driver(host)
            service = make_compute(
                embedded.around_of_hosts, host, driver, cell.transport_url, embedded.state.host(host)
            )
            embedded.computes[host] = service
            embedded._cleanup.callback(service.stop)
            self.force_down(host, False)
            service.start()

    def watchers(self, name: str) -> int:
        """How many have the image open for writing."""
        return self.ceph.run("rbd", "status", f"vms/{name}").count("watcher=")


@contextmanager
def ceph_of(directory: Path, address: str, namespaces: Iterable[str]) -> Iterator[tuple[Ceph, CephPool]]:
    """A Ceph that the hosts with these network namespaces reach at ``address``, and the pool as their options name it."""
    ceph = Ceph(directory, address)
    pool = CephPool("vms", str(ceph.configuration("compute")), "compute", str(uuids.uuid4()))
    with storage_network(address, namespaces):
        try:
            ceph.start()
            yield ceph, pool
        finally:
            ceph.stop()


@contextmanager
def ceph_cloud(
    directory: Path, hosts_per_cell: int = 2, address: str = ADDRESS, **more: dict[str, Any]
) -> Iterator[CephCloud]:
    """Serves inside of the context. ``address``: of Ceph. ``more``: options, by group."""
    hosts = [host for host in HOSTS if int(host[-1]) <= hosts_per_cell]
    lab = Lab(directory / "state" / "lab")
    endpoints = lab.start(hosts)
    try:
        with ceph_of(directory / "ceph", address, [each.netns for each in endpoints.values()]) as (ceph, pool):
            libvirt = {
                "images_type": "rbd",
                "images_rbd_pool": pool.pool,
                "images_rbd_ceph_conf": pool.conf,
                "rbd_user": pool.user,
                "rbd_secret_uuid": pool.secret_uuid,
            }
            embedded = EmbeddedCloud(
                directory / "state",
                port=0,
                hosts_per_cell=hosts_per_cell,
                driver="libvirt",
                overrides={"libvirt": libvirt, **more},
            )
            embedded.start()
            try:
                yield CephCloud(embedded, ceph)
            finally:
                embedded.stop()
    finally:
        lab.stop(keep_guests=False)


@contextmanager
def apart_cloud(directory: Path, hosts: list[str], address: str = ADDRESS) -> Iterator[CephCloud]:
    """Two cells of two hosts. Each of ``hosts`` has its disks in a Ceph of its own, which no other host reaches as its store."""
    lab = Lab(directory / "state" / "lab")
    endpoints = lab.start(HOSTS)
    clusters = {host: Ceph(directory / f"ceph-{host}", address) for host in hosts}
    pools = {
        host: CephPool("vms", str(ceph.configuration("compute")), "compute", str(uuids.uuid4()))
        for host, ceph in clusters.items()
    }
    try:
        with storage_network(address, [each.netns for each in endpoints.values()]), ExitStack() as stack:
            for ceph in clusters.values():
                stack.callback(ceph.stop)
                ceph.start()
            embedded = EmbeddedCloud(directory / "state", port=0, hosts_per_cell=2, driver="libvirt", pools=pools)
            embedded.start()
            stack.callback(embedded.stop)
            yield CephCloud(embedded, clusters[hosts[0]], clusters)
    finally:
        lab.stop(keep_guests=False)

"""Guests whose disks are in one real Ceph, for `benchmarks.downtime`: their cloud, their data, and what a move does meanwhile."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import libvirt

from causeway.embedded.cloud import EmbeddedCloud
from causeway.virt.libvirt.driver import LibvirtDriver
from causeway.virt.libvirt.storage.rbd_disks import RbdDisks
from tests.integration.real_services.ceph import Ceph, missing
from tests.integration.real_services.ceph_cloud import ceph_cloud

#: of a network that nothing else on this machine has
ADDRESS = "10.96.33.254"
_FILL_SECONDS = 1800
# Ceph's bindings are the distribution's.
_PYTHON = "/usr/bin/python3"
_FILL = """
import os, rados, rbd, sys
conf, name, first, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with rados.Rados(conffile=conf, rados_id="admin") as cluster, cluster.open_ioctx("vms") as pool, rbd.Image(pool, name) as image:
    for offset in range(first, first + size, 8 << 20):
        image.write(os.urandom(min(8 << 20, first + size - offset)), offset)
    image.flush()
"""

__all__ = ["Act", "Acts", "fill", "libvirts_downtime", "missing", "running", "watched"]


@contextmanager
def running(directory: Path) -> Iterator[tuple[EmbeddedCloud, Ceph]]:
    """Two cells with two hosts each."""
    with ceph_cloud(directory, address=ADDRESS) as cloud:
        yield cloud.embedded, cloud.ceph


def fill(ceph: Ceph, uuid: str, first: int, size: int) -> None:
    """Random data from the byte ``first`` on, while the guest is off."""
    conf = str(ceph.configuration("admin"))
    subprocess.run(
        [_PYTHON, "-c", _FILL, conf, f"{uuid}_disk", str(first), str(size)], check=True, timeout=_FILL_SECONDS
    )


def libvirts_downtime(cloud: EmbeddedCloud, host: str, uuid: str) -> float:
    """Seconds that a guest stood still when it came to a host live, as its hypervisor has counted."""
    driver = cloud.computes[host].host.driver
    assert isinstance(driver, LibvirtDriver)
    kept = libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED | libvirt.VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED
    stats: dict[str, Any] = driver._connection.call(
        "say what it counted", lambda to: to.lookupByUUIDString(uuid).jobStats(kept), again=True
    )
    return float(stats[libvirt.VIR_DOMAIN_JOB_DOWNTIME]) / 1000


@dataclass(frozen=True)
class Act:
    """``began``: of `time.time`."""

    host: str
    name: str
    began: float
    seconds: float


@dataclass
class Acts:
    """What hosts did: guests shut down, and calls of Ceph and libvirt by what was asked."""

    of_ceph: list[Act] = field(default_factory=list)
    of_libvirt: list[Act] = field(default_factory=list)
    shutdowns: list[Act] = field(default_factory=list)

    def noted(
        self, found: list[Act], host: str, name: Callable[..., str], act: Callable[..., Any]
    ) -> Callable[..., Any]:
        def noting(*given: Any, **named: Any) -> Any:
            began, clock = time.time(), time.monotonic()
            try:
                return act(*given, **named)
            finally:
                found.append(Act(host, name(*given), began, time.monotonic() - clock))

        return noting


@contextmanager
def watched(cloud: EmbeddedCloud) -> Iterator[Acts]:
    """Notes what the hosts do from now on."""
    acts, changed = Acts(), list[tuple[Any, str]]()

    def watch(owner: Any, name: str, found: list[Act], host: str, say: Callable[..., str]) -> None:
        changed.append((owner, name))
        setattr(owner, name, acts.noted(found, host, say, getattr(owner, name)))

    for host, service in cloud.computes.items():
        driver = service.host.driver
        assert isinstance(driver, LibvirtDriver)
        watch(driver._connection, "call", acts.of_libvirt, host, lambda what, *_given: str(what))
        watch(driver, "power_off", acts.shutdowns, host, lambda *_given: "power_off")
        if isinstance(driver._disks, RbdDisks):
            client = driver._disks.store.client
            watch(client, "ask", acts.of_ceph, host, lambda call, *_given: type(call).__name__)
    try:
        yield acts
    finally:
        for owner, name in changed:
            delattr(owner, name)

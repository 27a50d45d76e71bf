"""An embedded cloud whose guests are real."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from causeway.embedded.cloud import EmbeddedCloud
from causeway.virt.lab.hosts import Lab
from tests.functional.servers.broken_hosts import force_down


@contextmanager
def cloud_with_guests(directory: Path, **options: Any) -> Iterator[EmbeddedCloud]:
    """A running cloud on libvirt hosts. At the end its guests and their hypervisors are stopped, too."""
    embedded = EmbeddedCloud(directory, port=0, driver="libvirt", **options)
    embedded.start()
    try:
        yield embedded
    finally:
        embedded.stop()
        Lab(embedded.state.lab).stop(keep_guests=False)


def switch_off(embedded: EmbeddedCloud, host: str) -> None:
    """A host loses its power: its compute is gone, its guests are off; and somebody says so."""
    embedded.computes[host].stop()
    # The service has closed its own.
    driver = embedded.hosts.driver(host)
    for uuid in driver.list_guests():
        driver.power_off(uuid, 0)
    driver.close()
    force_down(embedded, host)

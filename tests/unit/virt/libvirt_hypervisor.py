"""libvirt's own hypervisor for tests: it runs in this process, and its guests are records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import libvirt

from causeway.virt.libvirt.connection import Connection

UUID = "6695eb01-f6a4-8304-79aa-97f2502e193f"
_NODE = f"""<node><domain type='test'>
  <name>test</name><uuid>{UUID}</uuid><memory>8388608</memory><vcpu>2</vcpu><os><type>hvm</type></os>
</domain></node>"""


class TestHypervisor(Connection):
    """It has one guest, which runs. Its hypervisor knows neither keep-alive nor all events.

    ``folder``: for the file that makes it nobody else's: all connections to ``test:///default`` share their guest.
    """

    __test__ = False

    def __init__(self, folder: Path) -> None:
        node = folder / "node.xml"
        node.write_text(_NODE)
        uri = f"test://{node}"
        super().__init__(uri, name="test", timeout=30)
        self.hypervisor = libvirt.open(uri)

    def _connect(self) -> Any:
        return self.hypervisor

    @property
    def guest(self) -> Any:
        return self.hypervisor.lookupByUUIDString(UUID)

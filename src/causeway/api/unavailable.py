"""What the Compute API has and this cloud does not: it answers 501, after everything else about the request was checked.

This is the only list of it. docs/features.md shows it, and a test compares the two.
"""

from __future__ import annotations

from enum import Enum

from causeway import errors

_ACTION = "POST /servers/{server_id}/action"


class Unavailable(Enum):
    """Each has the operation, and what its caller asks for."""

    ATTACH_SHARE = ("POST /servers/{server_id}/shares", "Attaching a share to a server")
    LIST_NODES = ("GET /os-baremetal-nodes", "A list of bare metal nodes")
    SHOW_NODE = ("GET /os-baremetal-nodes/{node_id}", "A bare metal node")
    HOST_MAINTENANCE = ("PUT /os-hosts/{host}", "The maintenance mode of a host (`maintenance_mode`)")
    HOST_STARTUP = ("GET /os-hosts/{host}/startup", "Starting a host")
    HOST_SHUTDOWN = ("GET /os-hosts/{host}/shutdown", "Shutting a host down")
    HOST_REBOOT = ("GET /os-hosts/{host}/reboot", "Rebooting a host")
    UPTIME = ("GET /os-hypervisors/{hypervisor_id}/uptime", "The uptime of a hypervisor that does not report it")

    def __init__(self, operation: str, what: str) -> None:
        self.operation = operation
        self.what = what

    def refusal(self, on: str = "") -> errors.NotImplementedHere:
        """The error to raise. ``on``: what the request was for, such as ``server ID``."""
        asked = f" ({on})" if on else ""
        return errors.NotImplementedHere(f"{self.what} is not implemented by this cloud{asked}: {self.operation}")


def as_table() -> str:
    """The list as a table, as in docs/features.md."""
    rows = (f"| `{one.operation}` | {one.what} |" for one in Unavailable)
    return "\n".join(["| operation | what is not there |", "|---|---|", *rows])

"""The console's requests to the API. ``compute``: openstacksdk's proxy of it."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from causeway.openstack_plugin import asking

DRAINS = "/os-causeway/drains"
CELLS = "/os-causeway/cells"
ADOPTION = "/os-causeway/adoption"
# The most entries of a list that a page shows.
MOST = 200
TIMEOUT = 60.0
# Of what a page does not wait for.
BRIEF_TIMEOUT = 5.0
# The console's name of an action -> the API's.
SERVER_ACTIONS = {"confirm": "confirmResize", "revert": "revertResize"}
# Scheme of a WebSocket -> of its page.
_PAGES = {"ws": "http", "wss": "https"}
DRAIN_ACTIONS = ("start", "pause", "resume", "cancel", "rollback")


def serial_page(url: str) -> str:
    """The URL of the page of a serial console. ``url``: that of its WebSocket, from the API; the page is beside it."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(scheme=_PAGES[parts.scheme], path=f"{parts.path.rstrip('/')}/serial.html"))


class Cloud:
    """The cloud. All methods raise `causeway.openstack_plugin.asking.NotAsked` (Refused if the API answers and refuses)."""

    def __init__(self, compute: Any) -> None:
        self._compute = compute

    def cells(self) -> list[dict[str, Any]]:
        """The cells, each with its hosts as ``nodes``, which are empty if the cell does not answer."""
        found: list[dict[str, Any]] = self._ask(CELLS)["cells"]
        for cell in found:
            cell["nodes"] = self._ask(f"{CELLS}/{cell['id']}/hosts")["hosts"] if cell["answers"] else []
        return found

    def drains(self) -> list[dict[str, Any]]:
        return self._list(DRAINS, "drains")

    def drain(self, drain_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self._ask(f"{DRAINS}/{drain_id}")["drain"]
        return found

    def servers_of_drain(self, drain_id: str) -> list[dict[str, Any]]:
        """All servers of a drain."""
        return list(asking.pages(self._compute, f"{DRAINS}/{drain_id}/servers", "servers", timeout=TIMEOUT))

    def operations(self) -> list[dict[str, Any]]:
        """The operations that have not ended: stuck ones first, then those that wait, then the oldest."""
        found = self._list("/os-causeway/operations", "operations")
        return sorted(
            found, key=lambda one: (one["state"] != "stuck", one["waits_for"] is None, one["started_at"] or "")
        )

    def operation(self, operation_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self._ask(f"/os-causeway/operations/{operation_id}")["operation"]
        return found

    def server(self, server_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self._ask(f"/servers/{server_id}")["server"]
        return found

    def operations_of(self, server_id: str) -> list[dict[str, Any]]:
        return self._list(f"/os-causeway/servers/{server_id}/operations", "operations", all="1")

    def actions_of(self, server_id: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask(f"/servers/{server_id}/os-instance-actions")["instanceActions"]
        return found

    def console_url(self, server_id: str) -> str:
        """The URL of a page that opens the server's screen, or its serial console if it has no screen."""
        path = f"/servers/{server_id}/remote-consoles"
        try:
            return str(self._ask_for_console(path, "vnc", "novnc"))
        except asking.Refused as refused:
            if refused.status != HTTPStatus.BAD_REQUEST:
                raise
        return serial_page(self._ask_for_console(path, "serial", "serial"))

    def _ask_for_console(self, path: str, protocol: str, kind: str) -> str:
        body = {"remote_console": {"protocol": protocol, "type": kind}}
        found: str = self._ask(path, method="POST", body=body)["remote_console"]["url"]
        return found

    def explanation(self, server_id: str) -> dict[str, Any]:
        """Where a server could be moved to, and why not elsewhere."""
        found: dict[str, Any] = self._ask(f"/os-causeway/servers/{server_id}/move-candidates")["move_candidates"]
        return found

    def audit(self) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("/os-causeway/audit")["audit"]
        return found

    def adoption(self) -> dict[str, Any]:
        """How far the cloud is taken over from Nova."""
        found: dict[str, Any] = self._ask(ADOPTION)["adoption"]
        return found

    def is_imported(self) -> bool:
        """Whether something was imported from Nova."""
        found = asking.ask(self._compute, ADOPTION, query={"brief": "1"}, timeout=BRIEF_TIMEOUT)
        return bool(found["adoption"]["imported"])

    def act_on_drain(self, drain_id: str, action: str) -> None:
        self._ask(f"{DRAINS}/{drain_id}/action", method="POST", body={action: None})

    def act_on_server(self, server_id: str, action: str) -> None:
        self._ask(f"/servers/{server_id}/action", method="POST", body={SERVER_ACTIONS[action]: None})

    def cancel_operation(self, operation_id: str) -> None:
        self._ask(f"/os-causeway/operations/{operation_id}", method="DELETE")

    def _ask(self, path: str, **more: Any) -> Any:
        return asking.ask(self._compute, path, timeout=TIMEOUT, **more)

    def _list(self, path: str, key: str, **query: str) -> list[dict[str, Any]]:
        return list(asking.pages(self._compute, path, key, query, most=MOST, timeout=TIMEOUT))

"""Requests to the guest itself: diagnostics, a dump of its memory, a trim, a new password."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.errors import GuestFailed
from causeway.model.diagnostics import Diagnostics
from causeway.model.instance import Instance


class InsideEndpoint:
    """RPC: diagnostics, crash dumps, trims, passwords."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._guard = threading.Lock()
        #: the servers of which a trim runs, or waits for the server's lock
        self._trims: set[str] = set()

    def get_diagnostics(self, context: RequestContext, *, instance_uuid: str) -> Diagnostics:  # noqa: ARG002
        return self._host.driver.diagnostics(instance_uuid)

    def trigger_crash_dump(self, context: RequestContext, *, instance_uuid: str) -> None:  # noqa: ARG002
        # Not under the server's lock: its holder may be waiting for the guest that hangs.
        self._host.driver.trigger_crash_dump(instance_uuid)

    def trim_guest(self, context: RequestContext, *, instance: Instance) -> None:  # noqa: ARG002
        # Not beside a transfer, which has the lock. Whether the guest is still here, the driver finds out.
        with self._only_trim(instance.uuid), self._host.lock(instance.uuid):
            self._host.driver.trim_guest(instance)

    @contextmanager
    def _only_trim(self, uuid: str) -> Iterator[None]:
        """Raises GuestFailed if another trim of the guest runs or waits: an agent that hangs must not take up all threads."""
        with self._guard:
            if uuid in self._trims:
                raise GuestFailed(f"The guest of server {uuid} is being trimmed already.")
            self._trims.add(uuid)
        try:
            yield
        finally:
            with self._guard:
                self._trims.remove(uuid)

    def set_admin_password(self, context: RequestContext, *, instance: Instance, password: str) -> None:  # noqa: ARG002
        with self._host.lock(instance.uuid):
            self._host.driver.set_password(instance, _administrator(instance), password)


def _administrator(instance: Instance) -> str:
    """The name of the administrator: from the image, else the default of its system, as in Nova's libvirt driver."""
    properties = instance.image_meta.properties if instance.image_meta is not None else {}
    named = properties.get("os_admin_user")
    if named:
        return str(named)
    return "Administrator" if properties.get("os_type") == "windows" else "root"

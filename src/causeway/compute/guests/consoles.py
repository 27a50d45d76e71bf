"""Finds the consoles of guests."""

from __future__ import annotations

from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.errors import ConsoleTypeUnavailable
from causeway.model.console import ConsoleAddress, ConsoleType


class ConsolesEndpoint:
    """RPC: consoles. Changes nothing. It is called when a console is requested, and again when it is opened."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def get_console(
        self,
        context: RequestContext,  # noqa: ARG002
        *,
        instance_uuid: str,
        console_type: ConsoleType,
    ) -> ConsoleAddress:
        conf = self._host.conf
        if console_type is ConsoleType.NOVNC:
            enabled, base = conf.vnc.enabled, conf.vnc.novncproxy_base_url
        else:
            enabled, base = conf.serial_console.enabled, conf.serial_console.base_url
        if not enabled:
            raise ConsoleTypeUnavailable.of(console_type.value, "The server's host has none.")
        address, port = self._host.driver.console_listener(instance_uuid, console_type)
        return ConsoleAddress(address, port, base)

"""The facts from which the data of a guest is made."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif


def nothing() -> dict[str, Any]:
    return {}


@dataclass
class ServerFacts:
    """What a guest may read about its server.

    ``dhcp_domain``: the domain of its host name. ``vendor_data``: the operator's static data. ``dynamic_vendor_data`` calls the
    operator's services for the rest, when it is needed. ``admin_password``: only a config drive may have it.
    """

    instance: Instance
    vifs: list[Vif]
    block_devices: list[BlockDevice]
    dhcp_domain: str = ""
    vendor_data: Any = field(default_factory=dict)
    dynamic_vendor_data: Callable[[], dict[str, Any]] = nothing
    admin_password: str | None = field(default=None, repr=False)

    @cached_property
    def dynamic(self) -> dict[str, Any]:
        """The answers of the operator's services. They are called once, although several versions have the answers."""
        return self.dynamic_vendor_data()

    @property
    def hostname(self) -> str:
        return host_name(self.instance, self.dhcp_domain)

    @property
    def user_data(self) -> bytes | None:
        return base64.b64decode(self.instance.user_data) if self.instance.user_data else None

    @property
    def contents(self) -> dict[str, bytes]:
        """The injected (personality) files by the names that ``meta_data.json`` gives them."""
        return {
            f"{place:04d}": base64.b64decode(injected.contents)
            for place, injected in enumerate(self.instance.injected_files)
        }

    def address(self, version: int) -> str:
        """Returns the first fixed address of an IP version; empty if there is none."""
        return next((ip.address for vif in self.vifs for ip in vif.fixed_ips if ip.version == version), "")

    @property
    def floating_ip(self) -> str:
        """The server's first floating IP; empty if there is none."""
        return next((each for vif in self.vifs for ip in vif.fixed_ips for each in ip.floating_ips), "")

    @property
    def security_groups(self) -> list[str]:
        """The groups of all its ports; without ports, the groups that the user requested."""
        seen = [name for vif in self.vifs for name in vif.security_groups]
        return list(dict.fromkeys(seen if self.vifs else self.instance.security_groups))


def host_name(instance: Instance, dhcp_domain: str) -> str:
    return f"{instance.hostname}.{dhcp_domain}" if dhcp_domain else instance.hostname

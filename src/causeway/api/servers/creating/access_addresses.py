"""accessIPv4 and accessIPv6: addresses that an owner sets, stored in their shortest form as in Nova."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Any

_FIELDS = {"accessIPv4": "access_ip_v4", "accessIPv6": "access_ip_v6"}


def changes(wanted: Mapping[str, Any]) -> dict[str, str]:
    """field of an instance -> its value, for those addresses that a body has."""
    return {field: str(ipaddress.ip_address(wanted[key])) for key, field in _FIELDS.items() if key in wanted}

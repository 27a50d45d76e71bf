"""What a move remembers, as it begins."""

from __future__ import annotations

from typing import Any

_FLAVOR = {"flavorid": "1", "name": "f", "vcpus": 1, "memory_mb": 1, "root_gb": 1}
MEMORY: dict[str, Any] = {
    "migration_type": "resize",
    "source_cell": "cell",
    "source_host": "host",
    "source_node": "n",
    "source_hypervisor": None,
    "source_zone": None,
    "old_flavor": _FLAVOR,
    "new_flavor": _FLAVOR,
    "old_vm_state": "active",
}

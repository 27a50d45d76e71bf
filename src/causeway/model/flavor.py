"""Flavors."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Flavor:
    """A flavor; a copy of it is embedded in each server. Sizes: memory and swap in MiB, disks in GiB."""

    flavorid: str
    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int = 0
    swap: int = 0
    rxtx_factor: float = 1.0
    is_public: bool = True
    disabled: bool = False
    description: str | None = None
    extra_specs: dict[str, str] = field(default_factory=dict)
    id: int = 0

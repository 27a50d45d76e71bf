"""Which guests must stand still while their memory is copied, because the hypervisor misses what they write to it.

QEMU before 9.0 misses writes of emulated guests: when it begins a round, it does not notify their processors that each page is
to be reported anew (`cpu_physical_memory_sync_dirty_bitmap`; fixed upstream in March 2024: "physmem: Fix migration dirty
bitmap coherency with TCG memory access"; not in Debian 12). What was written later to a page that had been sent is not sent
again, and the guest's kernel crashes at the target. KVM counts in the kernel, and is not concerned.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

_EMULATED = "qemu"
# As libvirt writes 9.0.0.
_FIXED_IN = 9_000_000


def is_missed(hypervisor: Any, domain_xml: str) -> bool:
    """Whether writes of this guest would be missed if it ran while its memory is copied."""
    return is_missed_of(hypervisor, ET.fromstring(domain_xml).get("type", _EMULATED))


def is_missed_of(hypervisor: Any, virt_type: str) -> bool:
    """Whether writes of such guests (``kvm``, ``qemu``) would be."""
    return virt_type == _EMULATED and int(hypervisor.getVersion()) < _FIXED_IN

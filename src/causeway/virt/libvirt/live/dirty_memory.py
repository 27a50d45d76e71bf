"""Which guests must stand still while their memory is copied, because the hypervisor misses some of their writes.

QEMU before 9.0 misses writes of emulated guests: when it begins a round, it does not notify their processors that each page is to
be reported anew (`cpu_physical_memory_sync_dirty_bitmap`; fixed upstream in March 2024: "physmem: Fix migration dirty bitmap
coherency with TCG memory access"; not in Debian 12). A page that is written after it was sent is not sent again, and the guest's
kernel crashes at the target. With KVM the kernel records writes, so this does not happen.
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

_EMULATED = "qemu"
# 9.0.0, as libvirt encodes versions.
_FIXED_IN = 9_000_000


def is_missed(hypervisor: Any, domain_xml: str) -> bool:
    """Whether writes of this guest would be missed, if it ran while its memory is copied."""
    return is_missed_of(hypervisor, ET.fromstring(domain_xml).get("type", _EMULATED))


def is_missed_of(hypervisor: Any, virt_type: str) -> bool:
    """The same for all guests of a ``virt_type``: ``kvm`` or ``qemu``."""
    return virt_type == _EMULATED and int(hypervisor.getVersion()) < _FIXED_IN

"""What images say of the agent in a guest, which can keep its file systems still for a moment."""

from __future__ import annotations

from oslo_utils import strutils

from causeway.model.instance import Instance


def has_agent(instance: Instance) -> bool:
    """Whether there may be an agent in the guest (image property ``hw_qemu_guest_agent``)."""
    return _says(instance, "hw_qemu_guest_agent")


def is_required(instance: Instance) -> bool:
    """Whether what the guest runs is only to be copied with its file systems still (``os_require_quiesce``)."""
    return _says(instance, "os_require_quiesce")


def _says(instance: Instance, name: str) -> bool:
    value = instance.image_meta.properties.get(name) if instance.image_meta is not None else None
    return bool(strutils.bool_from_string(value, default=False))

"""What an image says about the agent in its guests, which can keep their file systems still for a moment."""

from __future__ import annotations

from oslo_utils import strutils

from causeway.model.instance import Instance


def has_agent(instance: Instance) -> bool:
    """Whether the image says that its guests have an agent (property ``hw_qemu_guest_agent``)."""
    return _says(instance, "hw_qemu_guest_agent")


def is_required(instance: Instance) -> bool:
    """Whether a running guest may be copied only while its file systems are still (property ``os_require_quiesce``)."""
    return _says(instance, "os_require_quiesce")


def _says(instance: Instance, name: str) -> bool:
    value = instance.image_meta.properties.get(name) if instance.image_meta is not None else None
    return bool(strutils.bool_from_string(value, default=False))

"""What an image says about the agent in its guests, which can keep their file systems still for a moment."""

from __future__ import annotations

from oslo_utils import strutils

from causeway.errors import WarmCopyImpossible
from causeway.model.instance import Instance


def has_agent(instance: Instance) -> bool:
    """Whether the image says that its guests have an agent (property ``hw_qemu_guest_agent``)."""
    return _says(instance, "hw_qemu_guest_agent")


def is_required(instance: Instance) -> bool:
    """Whether a running guest may be copied only while its file systems are still (property ``os_require_quiesce``)."""
    return _says(instance, "os_require_quiesce")


def refused(instance: Instance, why: str) -> WarmCopyImpossible:
    """The error of a copy that is not made. ``why`` the file systems don't stand still, for administrators."""
    return WarmCopyImpossible(
        f"The file systems of server {instance.uuid} can't be kept still, which its image requires (os_require_quiesce):"
        " no agent in it answers. Its disks can be copied when it is off.",
        details=why,
    )


def _says(instance: Instance, name: str) -> bool:
    value = instance.image_meta.properties.get(name) if instance.image_meta is not None else None
    return bool(strutils.bool_from_string(value, default=False))

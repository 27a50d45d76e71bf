"""Rescue: a guest boots a disk made from an image, and has its own disks beside it. All of it is optional.

A driver that has `prepare_rescue` has all of these methods, and `power_on` with ``spec.rescue``.
"""

from __future__ import annotations

from causeway.virt.driver.specs import GuestSpec
from causeway.virt.driver.support import unsupported


class RescueMethods:
    """A part of `causeway.virt.driver.Driver`."""

    def prepare_rescue(self, spec: GuestSpec) -> None:  # noqa: ARG002
        """Makes the rescue disk of ``spec.rescue`` again, where `power_on` finds it. Does not touch the guest and its disks.

        Raises `NotImplementedHere` if guests of this hypervisor can't have such a disk, and `GuestFailed` if the guest's own
        root disk is not on this host.
        """
        raise unsupported("rescue guests")

    def has_rescue_disk(self, uuid: str) -> bool:  # noqa: ARG002
        """Whether a rescue disk of the server is on this host."""
        return False

    def is_rescued(self, uuid: str) -> bool:  # noqa: ARG002
        """Whether the hypervisor's definition of the guest has the rescue disk."""
        return False

    def delete_rescue_disk(self, uuid: str) -> None:
        """Deletes the rescue disk; nothing happens if there is none. Raises `GuestFailed` while the guest has it."""

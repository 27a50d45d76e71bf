"""Memory in files: a guest is saved at one host and woken, or stays suspended, at another. All of it is optional.

A driver that sets `supports_saved_memory` has all methods but `define_suspended`, which `supports_suspended_moves` adds. Both
need `LiveMigrationMethods.live_source`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from causeway.virt.driver.specs import GuestSpec
from causeway.virt.driver.support import unsupported
from causeway.virt.live_guest import LiveSource

_SAVE = "save the memory of guests to files"
_WAKE = "wake guests from saved memory"


class SavedMemoryMethods:
    """A part of `causeway.virt.driver.Driver`."""

    #: can save the memory of a guest to a file, and wake the guest from it on another host
    supports_saved_memory: bool = False
    #: a guest that is suspended on another host can be suspended on this one after a move
    supports_suspended_moves: bool = False

    # at the source

    def save_memory(self, uuid: str) -> None:  # noqa: ARG002
        """Saves the guest's memory to a file beside its disks; the guest is off then. Already saved: nothing happens.

        Raises `GuestFailed` if the guest neither runs nor is paused or suspended.
        """
        raise unsupported(_SAVE)

    def saved_memory(self, uuid: str, *, stashed: bool = False) -> Path | None:  # noqa: ARG002
        """The complete file with the guest's memory, beside its disks (or its ``stashed`` disks); None: there is none."""
        return None

    # at the target

    def check_can_wake(self, source: LiveSource) -> None:  # noqa: ARG002
        """Raises `ClaimRefused` if such a guest can't be woken here."""
        raise unsupported(_WAKE)

    def wake(
        self,
        spec: GuestSpec,  # noqa: ARG002
        *,
        vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None,  # noqa: ARG002
    ) -> None:
        """Makes the guest from its disks and its saved memory (or ``spec.memory``). It stands still until `resume_woken`.

        The file stays until then, so that this can be repeated. Already woken: nothing happens. ``vifs_plugged``: see
        `GuestMethods.spawn`.
        """
        raise unsupported(_WAKE)

    def resume_woken(self, uuid: str, *, is_paused: bool) -> None:  # noqa: ARG002
        """Lets a woken guest run. Deletes its saved memory first: that does not match disks which change from now on.

        ``is_paused``: its user had paused it, so it stays paused. Raises `GuestFailed` for a guest that was not woken.
        """
        raise unsupported(_WAKE)

    def define_suspended(self, spec: GuestSpec) -> None:  # noqa: ARG002
        """Makes the guest from its disks and its saved memory (or ``spec.memory``). It is off until `resume` wakes it.

        Already done: nothing changes. Raises `GuestFailed` if there is no memory, or if the guest lives.
        """
        raise unsupported("take over suspended guests")

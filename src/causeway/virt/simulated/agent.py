"""The agent in a simulated guest. It answers if the guest's image says that there is one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

from causeway.errors import GuestFailed
from causeway.model.instance import Instance
from causeway.virt import quiescing
from causeway.virt.simulated.guest import Guest
from causeway.virt.simulated.host_files import HostFiles


@contextmanager
def still(files: HostFiles, guest: Guest, instance: Instance) -> Iterator[None]:
    """Keeps the guest's file systems still for the time of the block, if it has an agent.

    Raises `WarmCopyImpossible` if it has none and its image requires one.
    """
    try:
        freeze(files, guest, instance)
    except GuestFailed as failure:
        if quiescing.is_required(instance):
            raise quiescing.refused(instance, failure.message) from failure
    try:
        yield
    finally:
        guest.is_frozen = False
        files.save(guest)


def set_password(files: HostFiles, guest: Guest, instance: Instance, user: str, password: str) -> None:
    """Writes a digest of the password to the guest's root disk. Raises `GuestFailed` if the guest has no agent."""
    check_there_is_one(guest, instance, "no password can be set")
    guest.write(guest.root_device, f"password,user={user},sha256={hashlib.sha256(password.encode()).hexdigest()}")
    files.save(guest)


def check_there_is_one(guest: Guest, instance: Instance, without: str) -> None:
    """Raises `GuestFailed` if the guest has no agent. ``without`` completes "There is no agent in guest G: ..."."""
    if not quiescing.has_agent(instance):
        raise GuestFailed(f"There is no agent in guest {guest.uuid}: {without}.")


def freeze(files: HostFiles, guest: Guest, instance: Instance) -> None:
    """Stops the guest's file systems. Raises `GuestFailed` if it has no agent."""
    if not quiescing.has_agent(instance):
        raise GuestFailed(f"There is no agent in guest {guest.uuid}.")
    guest.freezes, guest.is_frozen = guest.freezes + 1, True
    files.save(guest)

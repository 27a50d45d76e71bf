"""Live migration: a guest goes to another host while it runs. All of it is optional.

A driver that sets `supports_live_migration` has all of these methods, and `HostMethods.disk_room`. `causeway.virt.live_guest`
says in which order they are called, and how callers decide who owns the guest.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from causeway.model.instance import Instance
from causeway.virt.driver.specs import GuestSpec
from causeway.virt.driver.support import unsupported
from causeway.virt.live_guest import LiveOptions, LiveProgress, LiveSource, LiveTarget, Presence

_MIGRATE = "migrate guests live"


class LiveMigrationMethods:
    """A part of `causeway.virt.driver.Driver`."""

    #: can take part in live migrations
    supports_live_migration: bool = False
    #: while its memory (not its disks) travels, a guest stands still
    stands_still_when_live: bool = False

    def live_migration_lacks(self) -> list[str]:
        """What keeps guests from migrating live to or from this host, or from doing so safely: a sentence each. Takes seconds."""
        return []

    def live_migration_certificates(self) -> list[Path]:
        """The files with the certificates by which this host and others trust each other in live migrations; none: no TLS."""
        return []

    def presence(self, uuid: str) -> Presence:  # noqa: ARG002
        """What the hypervisor shows of the guest at this moment. Changes nothing."""
        raise unsupported(_MIGRATE)

    # at the source

    def live_source(self, instance: Instance) -> LiveSource:  # noqa: ARG002
        """What the target must know of a guest that runs, or that its user paused or suspended.

        Raises `GuestFailed` for a guest in any other state.
        """
        raise unsupported(_MIGRATE)

    def try_live_address(self, target: LiveTarget) -> None:  # noqa: ARG002
        """Raises `HostUnreachable` if this hypervisor can't reach the one at ``target``. Takes seconds at most."""
        raise unsupported(_MIGRATE)

    def live_migrate(
        self,
        spec: GuestSpec,  # noqa: ARG002
        target: LiveTarget,  # noqa: ARG002
        options: LiveOptions,  # noqa: ARG002
        progress: Callable[[LiveProgress], None],  # noqa: ARG002
    ) -> None:
        """Migrates the guest; returns when the hypervisor says that it has gone. ``spec``: the guest as it will be at the target.

        Calls ``progress`` about once a second; an exception from it aborts the migration. If a migration of this guest is
        already under way (its caller died), joins it. Raises `GuestFailed`, which says nothing about where the guest is.
        """
        raise unsupported(_MIGRATE)

    def live_progress(self, uuid: str) -> LiveProgress | None:  # noqa: ARG002
        """How far the migration of this guest has come; None: none is under way."""
        raise unsupported(_MIGRATE)

    def abort_live_migration(self, uuid: str) -> None:  # noqa: ARG002
        """Returns when no migration of the guest is under way any more. None was: nothing happens."""
        raise unsupported(_MIGRATE)

    def limit_live_migration(self, uuid: str, bandwidth: float) -> None:
        """Limits a migration under way to ``bandwidth`` bytes per second (0: no limit). None is under way: nothing happens."""

    def force_live_migration(self, uuid: str, *, post_copy: bool) -> None:  # noqa: ARG002
        """Has the guest go now: by post-copy if that is allowed, otherwise it stands still until all of it has arrived."""
        raise unsupported(_MIGRATE)

    # at the target

    def check_live_target(self, source: LiveSource) -> None:  # noqa: ARG002
        """Raises `ClaimRefused` if this host can't receive such a guest."""
        raise unsupported(_MIGRATE)

    def live_address(self) -> LiveTarget:
        """Where the hypervisors of other hosts reach this one."""
        raise unsupported(_MIGRATE)

    def prepare_live_target(self, spec: GuestSpec, source: LiveSource) -> LiveTarget:  # noqa: ARG002
        """Makes what the guest needs here before it comes: empty disks on their base images, config drive, ports, volumes.

        ``spec``: the guest as it will be here, with this host's volume connections and port bindings. Makes again what an
        earlier attempt made, unless the guest is already here. `GuestMethods.destroy` with its disks undoes this.
        """
        raise unsupported(_MIGRATE)

    def live_arrival(self, uuid: str) -> LiveProgress | None:  # noqa: ARG002
        """How much of the guest arrived when it last migrated to this host; None: nobody counted."""
        return None

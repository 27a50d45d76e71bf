"""What a compute service asks of guests: to exist, to run, to stand still."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from causeway.model.block_device import BlockDevice
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.states import PowerState
from causeway.virt.driver.specs import GuestSpec
from causeway.virt.driver.support import unsupported


class GuestMethods(ABC):
    """A part of `causeway.virt.driver.Driver`."""

    # required

    @abstractmethod
    def spawn(
        self, spec: GuestSpec, *, vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None
    ) -> PowerState:
        """Makes the guest: its disks (the root disk if ``spec.root_disk``), its definition; starts it if ``spec.power_on``.

        ``vifs_plugged`` makes a context. The driver enters it, plugs the ports, starts the guest paused and leaves the context,
        which waits until the network service has plugged the ports (raises `VifPluggingFailed` if it does not). Then the
        driver lets the guest run.

        If this fails, everything is as it was before.
        """

    @abstractmethod
    def power_on(
        self, spec: GuestSpec, *, vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None
    ) -> PowerState:
        """Defines the guest again from ``spec`` (without ``root_disk``) and starts it from the disks that are on the host.

        Makes ephemeral disks and swap that do not exist. With ``spec.rescue`` the guest boots its rescue disk, which must
        exist. ``vifs_plugged``: as for `spawn`, if what its ports were plugged with is gone, as after the host was off. Ports
        that stayed plugged are not plugged a second time, so nobody would say so.
        """

    @abstractmethod
    def power_off(self, uuid: str, timeout: float) -> None:
        """Asks the guest to shut down, waits up to ``timeout`` seconds, then cuts its power. 0 cuts it at once."""

    @abstractmethod
    def reboot(
        self,
        spec: GuestSpec,
        *,
        hard: bool,
        timeout: float,
        vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None,
    ) -> PowerState:
        """Shuts the guest down and starts it again. ``hard``: cuts its power and defines it again from ``spec``.

        ``timeout``: seconds for the guest to shut down, unless ``hard``. ``vifs_plugged``: as for `power_on`.
        """

    @abstractmethod
    def destroy(self, uuid: str, vifs: list[Vif], volumes: list[BlockDevice], *, destroy_disks: bool) -> None:
        """Stops the guest and deletes its definition, unplugs its ports and disconnects its volumes.

        Deletes its disks only if ``destroy_disks``.
        """

    # optional

    def machine_type(self, instance: Instance) -> str | None:  # noqa: ARG002
        """The machine type that the guest of a server has or will have; None: the hypervisor has no machine types."""
        return None

    def guest_name(self, uuid: str) -> str | None:  # noqa: ARG002
        """The name of a server's guest on this host; None: it has none here."""
        return None

    def pause(self, uuid: str) -> None:  # noqa: ARG002
        """Stops the guest's processors and keeps its memory. Raises `GuestFailed` if no such guest runs."""
        raise unsupported("pause guests")

    def unpause(self, uuid: str) -> None:  # noqa: ARG002
        """Lets a paused guest run."""
        raise unsupported("unpause guests")

    def suspend(self, uuid: str) -> None:  # noqa: ARG002
        """Saves the guest's memory to the host's disk; the guest is off then. Already suspended: nothing happens."""
        raise unsupported("suspend guests")

    def resume(self, spec: GuestSpec) -> PowerState:  # noqa: ARG002
        """Continues the guest where it was suspended. If its memory is lost, it boots."""
        raise unsupported("resume guests")


@contextmanager
def nothing_to_wait_for() -> Iterator[None]:
    """A ``vifs_plugged`` for guests without ports to wait for."""
    yield

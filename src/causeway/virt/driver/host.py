"""What a compute service asks about the host itself and about everything that it has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from causeway.model.states import PowerState
from causeway.virt.driver.facts import ExpectedDisk, GuestFacts, HostFacts, HostHardware
from causeway.virt.driver.support import unsupported


class HostMethods(ABC):
    """A part of `causeway.virt.driver.Driver`."""

    # required

    @abstractmethod
    def start(self) -> None:
        """Connects to the hypervisor. Called once, before anything else."""

    @abstractmethod
    def close(self) -> None:
        """Closes all connections and files. Guests keep running."""

    @abstractmethod
    def host_facts(self) -> HostFacts:
        """What the host is and has; called for each report."""

    @abstractmethod
    def list_guests(self) -> dict[str, PowerState]:
        """uuid -> power state of every guest that the hypervisor knows."""

    @abstractmethod
    def inspect(self, uuid: str) -> GuestFacts:
        """What this host really has of a server. Changes nothing."""

    @abstractmethod
    def list_disks(self) -> dict[str, bool]:
        """uuid -> whether its disks are stashed, for every server with disks here (with both kinds: True)."""

    @abstractmethod
    def copy_faults(
        self, uuid: str, disks: list[ExpectedDisk], volume_ids: list[str], *, stashed: bool = False
    ) -> list[str]:
        """Why this host's copy of a server is not enough to run it, for administrators. Empty: it is enough. Changes nothing.

        A move asks this before it destroys the other copy. The copy is enough if every disk exists, is complete, is large
        enough and can be read with everything that it stands on, and if a running guest uses them without errors and has the
        volumes. ``stashed``: checks the stashed disks, which no guest uses.
        """

    # optional

    def own_folders(self) -> list[Path]:
        """The folders in which guests and their disks are made. A host that can't write them is not chosen."""
        return []

    def list_temporary_files(self) -> dict[str, list[str]]:
        """Kind -> uuids of the servers of which there are files outside their folders, for work that is under way or broke off.

        The kinds are the driver's own words, of letters only. Files that this process uses and deletes itself are left out.
        """
        return {}

    def discard_temporary_files(self, kind: str, uuid: str) -> None:  # noqa: B027 - who makes none has nothing to delete
        """Deletes the files of a kind, which no work uses any more. Deleted already: nothing happens."""

    def host_hardware(self) -> HostHardware:
        """NUMA cells and PCI devices; asked once, when the host starts. Without it guests can ask for neither."""
        return HostHardware()

    def confine(self, shared_cpus: list[int]) -> None:  # noqa: B027 - a hypervisor without CPUs to choose from needs none
        """From now on, guests without CPUs of their own run only on these CPUs of the host. Called before any guest is made."""

    def disk_bytes(self, uuid: str) -> int | None:  # noqa: ARG002
        """How many bytes the disks of a server (not the stashed ones) occupy on this host; None: unknown."""
        return None

    def disk_room(self, *, over_commit: bool) -> int:  # noqa: ARG002
        """Bytes that are free for local disks. Without over-commit, minus what the disks on this host may still grow by."""
        raise unsupported("say how much room for disks is left")

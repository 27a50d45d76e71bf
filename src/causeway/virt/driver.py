"""The driver interface: all that a compute service asks of a hypervisor.

A driver knows guests, disks and devices of one host. It knows no database, no RPC and no service around it: images are
files in the image cache, volumes come with the connection info of the volume service, ports as VIFs. Every method may be
called again after a crash in its middle, and then completes what was begun: destroying what is not there, stashing what is
stashed, or starting what runs is a success.

Disks of a guest live in a directory of the driver named by the server's uuid. A move *stashes* them: they are kept beside,
out of the guest's reach, until the move is confirmed (`delete_stashed_disks`) or the server is restored
(`restore_stashed_disks`). At any time a host has for a server: nothing, disks, stashed disks, or (resize to the same host)
both.

The disks of a guest have names: ``disk`` is the root disk, ``disk.eph0``, ``disk.eph1``, ... are ephemeral disks, and
``disk.swap`` is the swap disk. Servers whose root disk is a volume may have the others. ``disk.rescue`` is what a rescued
server boots from: nothing of it is the server's own, and it travels nowhere.

Beside its disks a guest with UEFI or a TPM keeps what these know between boots. That is stashed, put back and deleted with its
disks, and made anew with the guest if there is none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from causeway.errors import ConsoleTypeUnavailable, NotImplementedHere
from causeway.model.block_device import BlockDevice
from causeway.model.console import ConsoleType
from causeway.model.diagnostics import Diagnostics
from causeway.model.instance import Instance
from causeway.model.network import Vif
from causeway.model.numa import NUMACell
from causeway.model.pci import PciDevice
from causeway.model.rescue import RescueImage
from causeway.model.states import PowerState
from causeway.virt.live import LiveOptions, LiveProgress, LiveSource, LiveTarget, Presence
from causeway.virt.volume_jobs import VolumeJobs
from causeway.virt.warm import DiskReader, DiskWriter, Round

# (bytes done, bytes total)
Progress = Callable[[int, int], None]

ROOT_DISK = "disk"
#: what saved memory is called among the disks that travel
MEMORY = "memory"
#: what a guest's firmware and TPM keep between boots (`causeway.virt.kept_state`), among the disks that travel
KEPT_STATE = "state"
SWAP_DISK = "disk.swap"
RESCUE_DISK = "disk.rescue"


def no_progress(done: int, total: int) -> None:
    """For callers who don't want to know."""


@dataclass
class HostFacts:
    """What a host is and has. Memory in MiB, disk in GiB."""

    hypervisor_hostname: str
    hypervisor_type: str
    hypervisor_version: int
    vcpus: int
    memory_mb: int
    local_gb: int
    cpu_info: dict[str, Any] = field(default_factory=dict)
    host_ip: str = "127.0.0.1"
    # [architecture, hypervisor type, vm mode], as the ImagePropertiesFilter wants it
    supported_instances: list[list[str]] = field(default_factory=list)
    traits: list[str] = field(default_factory=list)
    uptime: str | None = None


@dataclass
class HostHardware:
    """What of a host guests may be given a piece of, all of it: the configuration says how much is for guests.

    ``cells``: all CPUs are in ``cpuset``.
    """

    cells: list[NUMACell] = field(default_factory=list)
    pci_devices: list[PciDevice] = field(default_factory=list)


@dataclass
class GuestFacts:
    """What is really there for a server on this host."""

    uuid: str
    # None: no guest is known to the hypervisor
    power_state: PowerState | None
    vcpus: int = 0
    memory_mb: int = 0
    has_disks: bool = False
    has_stashed_disks: bool = False


@dataclass
class RootDisk:
    """Where a guest's root disk comes from, if it is not a volume.

    Either a base image alone (a new server), or a snapshot that was received from another host. The snapshot holds only
    what differs from the base image if ``base`` is set, and everything if not. The driver takes ownership of ``snapshot``
    (moves the file; if it has other names, too, what they name stays as it is). The disk grows to ``size_gb`` GiB if that is
    larger (0: the image's own size).
    """

    base: Path | None
    base_image_id: str | None
    snapshot: Path | None = None
    snapshot_format: str = "qcow2"
    size_gb: int = 0


@dataclass
class LocalDisk:
    """A local disk of a guest beside its root disk: an ephemeral disk, or swap.

    ``snapshot``: its content, received from another host; the driver takes the file. Without it a disk that is there stays
    (it grows, if it is to be larger; swap of another size is made anew), and one that is not is made, formatted as
    ``guest_format`` (``swap``, ``ext4``, ``vfat``, ...; None: as the tools of the host allow) with ``label``.
    """

    name: str
    device_name: str  # /dev/vdb
    size_mb: int
    guest_format: str | None = None
    label: str = ""
    disk_bus: str | None = None
    snapshot: Path | None = None
    snapshot_format: str = "qcow2"

    @property
    def is_swap(self) -> bool:
        return self.name == SWAP_DISK


@dataclass
class ExpectedDisk:
    """A local disk that a server's records name. ``size_mb``: MiB that the guest sees of it, at least."""

    name: str
    size_mb: int


@dataclass
class DiskExport:
    """A disk made ready to be sent: a file that stays until the context that made it is left.

    ``is_kept``: the file is still needed after that, as it is.
    """

    name: str
    path: Path
    disk_format: str
    size: int
    # Set if the file holds only what differs from this image
    base_image_id: str | None = None
    # Bytes of a real disk that each byte stands for: files of simulated guests are small
    scale: float = 1.0
    is_kept: bool = False


@dataclass
class Rescue:
    """What a guest boots instead of its own root disk. ``base``: the image's file; None: the rescue disk is there already."""

    image: RescueImage
    base: Path | None = None


@dataclass
class GuestSpec:
    """Everything a driver needs to make a guest. Sizes come from ``instance.flavor``."""

    instance: Instance
    # None: the guest's root disk is there already (`restore_stashed_disks` or a stopped guest), or is a volume
    root_disk: RootDisk | None
    # volumes with connection_info; each has device_name set
    volumes: list[BlockDevice]
    vifs: list[Vif]
    power_on: bool = True
    # name -> content of the files of the config drive; empty: no config drive
    config_drive: dict[str, bytes] = field(default_factory=dict)
    # ephemeral disks and swap
    local_disks: list[LocalDisk] = field(default_factory=list)
    # the memory that `Driver.wake` restores the guest from, received from another host; the driver takes the file
    memory: Path | None = None
    # what its firmware and TPM kept at another host; the driver takes the file. None: what is here stays, if anything is
    kept_state: Path | None = None
    # it is rescued; ``volumes`` and ``local_disks`` are those that it has meanwhile
    rescue: Rescue | None = None


class Driver(VolumeJobs, ABC):
    """One host's hypervisor. Methods raise `causeway.errors.GuestFailed` (or a sibling) with what failed and why."""

    #: can cold-migrate a server to the host it is on
    supports_migrate_to_same_host: bool = False

    @abstractmethod
    def start(self) -> None:
        """Connects; called once before anything else."""

    @abstractmethod
    def close(self) -> None:
        """Closes all connections and files; guests keep running."""

    @abstractmethod
    def host_facts(self) -> HostFacts: ...

    def host_hardware(self) -> HostHardware:
        """NUMA cells and PCI devices; asked once, when the host starts. Nothing: guests have no say in them."""
        return HostHardware()

    def confine(self, shared_cpus: list[int]) -> None:
        """Guests that were given no CPUs of the host run on these only. Called before any guest is made."""

    @abstractmethod
    def list_guests(self) -> dict[str, PowerState]:
        """uuid -> power state of every guest known to the hypervisor."""

    @abstractmethod
    def inspect(self, uuid: str) -> GuestFacts:
        """What is really there for a server; nothing of it is changed."""

    @abstractmethod
    def list_disks(self) -> dict[str, bool]:
        """uuid -> whether stashed, for every disk directory on this host (a uuid with both shows as stashed)."""

    def disk_bytes(self, uuid: str) -> int | None:  # noqa: ARG002
        """Bytes that a server's disks (not stashed ones) take on this host; None if the driver does not know."""
        return None

    @abstractmethod
    def copy_faults(
        self, uuid: str, disks: list[ExpectedDisk], volume_ids: list[str], *, stashed: bool = False
    ) -> list[str]:
        """Why a server could not live on from what this host has of it, for administrators; empty: it can.

        Every disk is there, complete, large enough and readable with all that it stands on; a guest that runs uses them
        without errors, and knows the volumes. ``stashed``: the stashed disks, which no guest uses. Nothing is changed.
        """

    # guests

    def machine_type(self, instance: Instance) -> str | None:  # noqa: ARG002
        """What the server's guest is, or will be; None: the hypervisor has no such thing."""
        return None

    @abstractmethod
    def spawn(
        self, spec: GuestSpec, *, vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None
    ) -> PowerState:
        """Makes disks (the root disk if ``spec.root_disk``), defines the guest and starts it (if ``spec.power_on``).

        ``vifs_plugged`` gives a context that the driver enters before it plugs the ports; leaving the context waits until
        the network service has plugged them (and raises `VifPluggingFailed` if it does not). The guest is started paused
        inside of the context and resumed after it. On failure nothing of the attempt is left behind but what was there.
        """

    @abstractmethod
    def power_on(self, spec: GuestSpec) -> PowerState:
        """Starts a guest from the disks that are there, defining it anew from ``spec`` (whose root_disk is None).

        Ephemeral disks and swap that are not there are made. With ``spec.rescue`` it boots its rescue disk, which must be there.
        """

    @abstractmethod
    def power_off(self, uuid: str, timeout: float) -> None:
        """Asks the guest to shut down and waits up to ``timeout`` seconds, then pulls the plug. 0 pulls it at once."""

    @abstractmethod
    def reboot(self, spec: GuestSpec, *, hard: bool, timeout: float) -> PowerState: ...

    @abstractmethod
    def pause(self, uuid: str) -> None:
        """The guest's processors stand still; its memory stays. Raises `GuestFailed` if there is no guest that runs."""

    @abstractmethod
    def unpause(self, uuid: str) -> None: ...

    @abstractmethod
    def suspend(self, uuid: str) -> None:
        """The guest's memory goes to the host's disk, and the guest is off. Suspended already: nothing happens."""

    @abstractmethod
    def resume(self, spec: GuestSpec) -> PowerState:
        """Resumes the guest where it was suspended; if its memory is lost, it boots."""

    @abstractmethod
    def destroy(self, uuid: str, vifs: list[Vif], volumes: list[BlockDevice], *, destroy_disks: bool) -> None:
        """Stops and undefines the guest, unplugs its ports and disconnects its volumes; deletes its disks if asked."""

    # rescue

    @abstractmethod
    def prepare_rescue(self, spec: GuestSpec) -> None:
        """Makes the rescue disk of ``spec.rescue`` anew, so that `power_on` finds it. The guest and its disks are not touched.

        Raises `NotImplementedHere` if no guest can be given such a disk, `GuestFailed` if its own root disk is not here.
        """

    @abstractmethod
    def has_rescue_disk(self, uuid: str) -> bool: ...

    @abstractmethod
    def is_rescued(self, uuid: str) -> bool:
        """Whether the guest, as the hypervisor knows it, has its rescue disk."""

    @abstractmethod
    def delete_rescue_disk(self, uuid: str) -> None:
        """Not there: nothing happens. Raises `GuestFailed` while the guest has it."""

    @abstractmethod
    def console_output(self, uuid: str) -> bytes:
        """What the guest wrote to its serial console, as far as it is kept."""

    # what only some hypervisors can do: they raise `NotImplementedHere`

    def diagnostics(self, uuid: str) -> Diagnostics:  # noqa: ARG002
        """What the hypervisor counts of a guest that runs. Raises `GuestFailed` if it does not."""
        raise NotImplementedHere("The hypervisor has no diagnostics of guests.")

    def trigger_crash_dump(self, uuid: str) -> None:  # noqa: ARG002
        """A non-maskable interrupt in the guest, whose kernel dumps its memory then, if it is set up for that.

        Raises `GuestFailed` if the guest is off.
        """
        raise NotImplementedHere("The hypervisor can't trigger crash dumps.")

    def set_password(self, instance: Instance, user: str, password: str) -> None:  # noqa: ARG002
        """Has the agent in the guest set a user's password. Raises `GuestFailed` if there is none, or it refuses."""
        raise NotImplementedHere("The hypervisor can't set passwords in guests.")

    def console_listener(self, uuid: str, kind: ConsoleType) -> tuple[str, int]:  # noqa: ARG002
        """Address and port at which a console of the guest listens, as proxies of consoles reach it.

        Raises `ConsoleTypeUnavailable` if the guest has none of this kind, and `GuestFailed` if it does not run.
        """
        raise ConsoleTypeUnavailable.of(kind.value, "The hypervisor has no such consoles.")

    # devices

    @abstractmethod
    def volume_connector(self) -> dict[str, Any]:
        """What the volume service needs to know of this host to export a volume to it."""

    @abstractmethod
    def check_volume_connectable(self, connection_info: dict[str, Any]) -> None:
        """Raises `ClaimRefused` if this host can't open such a volume."""

    @abstractmethod
    def attach_volume(self, uuid: str, volume: BlockDevice) -> None:
        """Connects the volume and, if there is a guest, gives it to the guest (also when it runs)."""

    @abstractmethod
    def detach_volume(self, uuid: str, volume: BlockDevice) -> None: ...

    @abstractmethod
    def attach_interface(self, uuid: str, vif: Vif) -> None: ...

    @abstractmethod
    def detach_interface(self, uuid: str, vif: Vif) -> None: ...

    # live migration; see `causeway.virt.live`

    #: can take part in live migrations
    supports_live_migration: bool = False
    #: a guest that is migrated live stands still while its memory, not its disks, travels
    stands_still_when_live: bool = False

    def presence(self, uuid: str) -> Presence:
        """What the hypervisor shows of the guest just now; nothing of it is changed."""
        raise NotImplementedError

    def live_migration_lacks(self) -> list[str]:
        """What keeps guests from migrating live to or from this host, or safely: a sentence each. May take seconds."""
        return []

    def live_source(self, instance: Instance) -> LiveSource:
        """Asked at the source, of a guest that runs, or that its user paused or suspended. Raises `GuestFailed` for any other."""
        raise NotImplementedError

    def check_live_target(self, source: LiveSource) -> None:
        """Asked at the target: raises `ClaimRefused` if such a guest can't be received here."""
        raise NotImplementedError

    def live_address(self) -> LiveTarget:
        """Asked at the target: where other hosts' hypervisors reach this one."""
        raise NotImplementedError

    def try_live_address(self, target: LiveTarget) -> None:
        """Asked at the source: raises `HostUnreachable` if its hypervisor does not reach the one there. Takes seconds at most."""
        raise NotImplementedError

    def disk_room(self, *, over_commit: bool) -> int:
        """Bytes that are free for local disks; without over-commit less what the disks that are here may still grow by."""
        raise NotImplementedError

    def prepare_live_target(self, spec: GuestSpec, source: LiveSource) -> LiveTarget:
        """Makes what must be there before the guest comes: empty disks over their base images, config drive, ports, volumes.

        ``spec``: the guest as it is to be here, with this host's connections of volumes and bindings of ports. What an attempt
        before left is made anew, unless the guest is here already. Undone by `destroy` with its disks.
        """
        raise NotImplementedError

    def live_migrate(
        self, spec: GuestSpec, target: LiveTarget, options: LiveOptions, progress: Callable[[LiveProgress], None]
    ) -> None:
        """The guest goes to the target; returns when the hypervisor says that it did. ``spec``: as it is to be at the target.

        ``progress`` is called every second or so; what it raises aborts the migration. A migration of the guest that is under way
        already (its caller died) is joined. Raises `GuestFailed`, which says nothing about where the guest is.
        """
        raise NotImplementedError

    def live_progress(self, uuid: str) -> LiveProgress | None:
        """At the source; None: no migration of this guest is under way."""
        raise NotImplementedError

    def live_arrival(self, uuid: str) -> LiveProgress | None:  # noqa: ARG002
        """At the target: how much came of a guest that was migrated here last; None: nobody counted."""
        return None

    def abort_live_migration(self, uuid: str) -> None:
        """At the source; returns when none is under way any more. None was: nothing happens."""
        raise NotImplementedError

    def limit_live_migration(self, uuid: str, bandwidth: float) -> None:
        """At the source: it may have so many bytes a second from now on; 0: any. None is under way: nothing happens."""

    def force_live_migration(self, uuid: str, *, post_copy: bool) -> None:
        """At the source: the guest is to go now, by post-copy if allowed, else by standing still until it is through."""
        raise NotImplementedError

    # memory that outlives a move through a file

    #: can save the memory of a guest to a file, and wake it from there on another host
    supports_saved_memory: bool = False
    #: can have a guest that is suspended on one host be suspended on another one
    supports_suspended_moves: bool = False

    def check_can_wake(self, source: LiveSource) -> None:
        """Asked at the target: raises `ClaimRefused` if such a guest can't be woken here."""
        raise NotImplementedError

    def save_memory(self, uuid: str) -> None:
        """The guest's memory goes to a file beside its disks, and the guest is off. Saved already: nothing happens.

        Raises `GuestFailed` if there is no guest that runs, is paused or is suspended.
        """
        raise NotImplementedError

    def saved_memory(self, uuid: str, *, stashed: bool = False) -> Path | None:
        """The file, whole, beside the guest's disks (or its ``stashed`` ones); None: there is none."""
        raise NotImplementedError

    def wake(self, spec: GuestSpec, *, vifs_plugged: Callable[[], AbstractContextManager[None]] | None = None) -> None:
        """Makes the guest from its disks and its saved memory (or ``spec.memory``). It stands still until `go_on`.

        The file stays until then, so that this can be done again. Done already: nothing happens. ``vifs_plugged``: as in `spawn`.
        """
        raise NotImplementedError

    def go_on(self, uuid: str, *, is_paused: bool) -> None:
        """Resumes a guest that was woken. Its saved memory is deleted first: it does not match disks that change from now on.

        ``is_paused``: by its user, who may resume it. Raises `GuestFailed` for a guest that was not woken.
        """
        raise NotImplementedError

    def define_suspended(self, spec: GuestSpec) -> None:
        """Makes the guest from its disks and its saved memory (or ``spec.memory``). It is off until `resume` wakes it.

        Done already: nothing changes. Raises `GuestFailed` if there is no memory, or if the guest lives.
        """
        raise NotImplementedError

    # disks of a move

    @abstractmethod
    def export_disk(self, instance: Instance, name: str, *, flatten: bool) -> AbstractContextManager[DiskExport]:
        """A disk of a stopped or paused guest as a file. ``flatten``: with all of it, not only what differs from its image.

        Raises `GuestFailed` if the guest runs, or has no such disk.
        """

    @abstractmethod
    def export_running_disk(self, instance: Instance, name: str) -> AbstractContextManager[DiskExport]:
        """A disk of a running guest as it is at one instant, with all of it, as a file. The guest keeps running meanwhile.

        Raises `GuestFailed` if there is no such guest or disk, or if the guest stops before its disk is copied.
        """

    @abstractmethod
    def export_kept_state(self, instance: Instance) -> AbstractContextManager[DiskExport]:
        """What the firmware and the TPM of a stopped or paused guest keep, as a file; nothing yet: a file that says so.

        Raises `GuestFailed` if the guest runs.
        """

    # copying disks while their guest runs; see `causeway.virt.warm`

    #: can do that
    supports_warm_copy: bool = False

    def begin_round(
        self, instance: Instance, names: list[str], number: int, *, since: int | None, flatten: bool
    ) -> Round:
        """Makes the named disks readable as they are at this instant, and counts from now on what changes.

        ``since``: only what changed since that round is reported; if that is not known any more (the hypervisor was killed),
        everything is. An open round of this guest ends. ``flatten``: the target can't have the base image.

        An agent in the guest keeps its file systems still at that instant, if ``since`` is given; one that does not answer is
        done without, unless the image requires it. Raises `WarmCopyImpossible` then, if the guest does not run, or can't be
        read so.
        """
        raise NotImplementedError

    def has_round(self, instance: Instance, number: int) -> bool:
        """Whether this round can be read (`open_round`): it was begun and not ended, and the guest ran on."""
        raise NotImplementedError

    def open_round(self, instance: Instance, name: str, number: int) -> AbstractContextManager[DiskReader]:
        """Raises `GuestFailed` if the round can't be read any more."""
        raise NotImplementedError

    def end_round(self, instance: Instance, number: int) -> None:
        """The round can't be read any more. What changed since is known on. Ended already: nothing happens."""
        raise NotImplementedError

    def open_changes(self, instance: Instance, name: str, since: int) -> AbstractContextManager[DiskReader | None]:
        """What changed of a disk since a round until its guest was off (also of a stashed disk); None: that is not known."""
        raise NotImplementedError

    def end_rounds(self, uuid: str) -> None:
        """Nothing of rounds stays: nothing can be read, nothing counts changes. The guest runs, is off, or is gone."""
        raise NotImplementedError

    def open_copy(self, path: Path, size: int, base: Path | None) -> AbstractContextManager[DiskWriter]:
        """A disk of ``size`` bytes that is put together at ``path``, made if it is not there, to be used as `RootDisk.snapshot`.

        ``base``: the image that it stands on.
        """
        raise NotImplementedError

    def adopt_disks(self, spec: GuestSpec) -> None:
        """Makes the guest's disks of what came, in their places, where `spawn` finds them. Done already: nothing happens.

        Unlike in `spawn` they stay whatever fails after this.
        """
        raise NotImplementedError

    @abstractmethod
    def stash_disks(self, uuid: str) -> None:
        """Puts the disks of a destroyed guest aside. Stashed already, or no disks at all: nothing happens."""

    @abstractmethod
    def restore_stashed_disks(self, uuid: str) -> None:
        """Puts stashed disks back. Not stashed: nothing happens."""

    @abstractmethod
    def delete_stashed_disks(self, uuid: str) -> None: ...

    @abstractmethod
    def delete_disks(self, uuid: str) -> None:
        """Deletes a guest's disks (not stashed ones). There must be no guest."""


def allocated_bytes(directory: Path) -> int:
    """What all files in a directory take of their file system; 0 if it is not there."""
    return sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())


@contextmanager
def nothing_to_wait_for() -> Iterator[None]:
    """A ``vifs_plugged`` for guests without ports to wait for."""
    yield

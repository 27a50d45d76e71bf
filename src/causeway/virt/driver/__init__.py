"""The driver interface: everything that a compute service asks of a hypervisor. This page is its manual.

A driver extends `Driver`. What is **required** is abstract: with it a host builds, starts, stops and deletes servers and takes
part in cold moves. What is **optional** has a default: it raises `NotImplementedHere` ("The hypervisor can't ..."), which users
see as the error of their request or of its action, or it says that there is no such thing.

==================  =================================================================  ==========================================
file                required                                                           optional
==================  =================================================================  ==========================================
`host`              start, close, host_facts, list_guests, inspect, list_disks,        host_hardware, confine, disk_bytes,
                    copy_faults                                                        disk_room, own_folders,
                                                                                       list_temporary_files,
                                                                                       discard_temporary_files
`guests`            spawn, power_on, power_off, reboot, destroy                        machine_type, guest_name, pause, unpause,
                                                                                       suspend, resume
`disks`             export_disk, stash_disks, restore_stashed_disks,                   export_running_disk, export_kept_state
                    delete_stashed_disks, delete_disks
`devices`                                                                              volumes and ports of running servers
`rescue`                                                                               rescue disks
`inside`                                                                               consoles, diagnostics, dumps, passwords
`volume_jobs`                                                                          swaps and snapshots of volumes in use
`warm_copy`                                                                            all, if ``supports_warm_copy``
`shared_disks`                                                                         all, if `storage` is not None
`live_migration`                                                                       all, if ``supports_live_migration``
`saved_memory`                                                                         all, if ``supports_saved_memory``
==================  =================================================================  ==========================================

`specs` has what a driver is given, `facts` what it answers.

**What a driver knows.** The guests, disks and devices of one host. It knows no database, no RPC and no service: images are
files in the image cache, volumes come with the volume service's connection info, ports as VIFs.

**Every method may be repeated.** It may be called again after a crash in its middle, and then completes what it began. What is
already so is a success: destroying what is not there, stashing what is stashed, starting what runs.

**Errors.** Methods raise `causeway.errors.GuestFailed`, or one like it, which says what failed and why.

**Disks.** The disks of a guest are in a directory of the driver that has the server's uuid as its name. A move *stashes* them:
they are put where the guest does not reach them, until the move is confirmed (`delete_stashed_disks`) or the server is restored
(`restore_stashed_disks`). So a host has of a server either nothing, or disks, or stashed disks, or (after a resize to the same
host) both.

``disk`` is the root disk, ``disk.eph0``, ``disk.eph1``, ... are ephemeral disks, ``disk.swap`` is swap. A server whose root
disk is a volume may have the others. ``disk.rescue`` is what a rescued server boots from.

Beside its disks, a guest with UEFI or a TPM keeps the state of these. It is stashed, restored and deleted together with the
disks; if there is none, it is made with the guest.
"""

from __future__ import annotations

from abc import ABC

from causeway.virt.driver.devices import DeviceMethods
from causeway.virt.driver.disks import DiskMethods
from causeway.virt.driver.facts import DiskExport, ExpectedDisk, GuestFacts, HostFacts, HostHardware, allocated_bytes
from causeway.virt.driver.guests import GuestMethods, nothing_to_wait_for
from causeway.virt.driver.host import HostMethods
from causeway.virt.driver.inside import InsideMethods
from causeway.virt.driver.live_migration import LiveMigrationMethods
from causeway.virt.driver.rescue import RescueMethods
from causeway.virt.driver.saved_memory import SavedMemoryMethods
from causeway.virt.driver.shared_disks import SharedDiskMethods
from causeway.virt.driver.specs import (
    KEPT_STATE,
    MEMORY,
    RESCUE_DISK,
    ROOT_DISK,
    SWAP_DISK,
    BaseImage,
    DiskCopy,
    GuestSpec,
    LocalDisk,
    Progress,
    Rescue,
    RootDisk,
    StoredImage,
    no_progress,
)
from causeway.virt.driver.volume_jobs import VolumeJobMethods
from causeway.virt.driver.warm_copy import WarmCopyMethods

__all__ = [
    "KEPT_STATE",
    "MEMORY",
    "RESCUE_DISK",
    "ROOT_DISK",
    "SWAP_DISK",
    "BaseImage",
    "DiskCopy",
    "DiskExport",
    "Driver",
    "ExpectedDisk",
    "GuestFacts",
    "GuestSpec",
    "HostFacts",
    "HostHardware",
    "LocalDisk",
    "Progress",
    "Rescue",
    "RootDisk",
    "StoredImage",
    "allocated_bytes",
    "no_progress",
    "nothing_to_wait_for",
]


class Driver(
    HostMethods,
    GuestMethods,
    DiskMethods,
    SharedDiskMethods,
    DeviceMethods,
    RescueMethods,
    InsideMethods,
    VolumeJobMethods,
    WarmCopyMethods,
    LiveMigrationMethods,
    SavedMemoryMethods,
    ABC,
):
    """The hypervisor of one host."""

    #: can cold-migrate a server to the host that it is on
    supports_migrate_to_same_host: bool = False

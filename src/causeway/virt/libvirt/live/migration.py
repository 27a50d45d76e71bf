"""Live migration: a guest goes to another host without stopping. The libvirtd of the source does it, with that of the target.

An emulated guest may have to stand still while its memory travels (`dirty_memory`), but not while its disks do.

libvirtd continues a migration when the caller dies, so whoever asks for a migration that is under way joins it. Calls that take
long, or may hang when the network dies, have connections of their own (`Connection.call_aside`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import libvirt

from causeway.errors import GuestFailed
from causeway.virt.libvirt import power, presence
from causeway.virt.libvirt.connection import AsideCall, Connection
from causeway.virt.libvirt.guest_xml import definition_shape
from causeway.virt.libvirt.guest_xml.migratable_xml import (
    disks_in_storage,
    for_target,
    has_volumes,
    local_disks,
    name_at_target,
)
from causeway.virt.libvirt.live import dirty_memory
from causeway.virt.libvirt.live.dead_peers import PeersOf
from causeway.virt.libvirt.live.live_settings import LiveSettings, checked, in_uri
from causeway.virt.libvirt.live.live_source import MIGRATABLE
from causeway.virt.live_guest import LiveOptions, LiveProgress, LiveTarget, Presence
from causeway.virt.undo import undone_on_failure

LOG = logging.getLogger(__name__)

# Seconds between two checks of a migration.
_LOOK_EVERY = 1.0
# A look that takes longer is abandoned, and the next one is made.
_LOOK_SECONDS = 10.0
# QEMU ignores requests while it waits for a dead network, at most as long as TCP does.
_ABORT_SECONDS = 180.0
# For so long a hypervisor may say nothing about a migration whose call has ended.
_SILENT_SECONDS = 180.0
# For so long it may say nothing while the call runs. TCP gives a dead network 924 s: after that, nothing waits for it.
_STUCK_SECONDS = 1000.0
# After the end of a migration, until libvirt at the source undefines the guest.
_UNDEFINE_SECONDS = 15.0
# MiB/s; more than any network.
_UNLIMITED = 1_000_000
_MIB = 1024**2


class LiveMigrations:
    """Migrations of this host's guests to other hosts. ``folder_of(uuid)``: the folder of a guest's disks."""

    def __init__(self, connection: Connection, settings: LiveSettings, folder_of: Callable[[str], Path]) -> None:
        self._connection = connection
        self.settings = settings
        self._folder_of = folder_of

    def presence(self, uuid: str) -> Presence:
        def look(hypervisor: Any) -> Presence:
            domain = power.find(hypervisor, uuid)
            return Presence.ABSENT if domain is None else presence.of_domain(domain)

        return self._connection.call(f"say where guest {uuid} is", look, again=True)

    def migrate(
        self,
        uuid: str,
        target: LiveTarget,
        options: LiveOptions,
        progress: Callable[[LiveProgress], None],
        must_be_whole: Callable[[list[str]], bool],
    ) -> None:
        """``must_be_whole``: whether all of these disks (names) must be copied, also what base images have."""
        call: AsideCall[None] | None = None
        if self._job(uuid) is None:
            options = replace(options, tls=options.tls or self.settings.tls)
            call = self._connection.begin_aside(
                lambda hypervisor: self._send(hypervisor, uuid, target, options, must_be_whole)
            )
        self._follow(uuid, call, progress)

    def progress(self, uuid: str) -> LiveProgress | None:
        return self._job(uuid)

    def arrival(self, uuid: str) -> LiveProgress | None:
        """How much of a guest arrived when it migrated to this host; None: that is not known."""

        def ask(hypervisor: Any) -> LiveProgress | None:
            domain = power.find(hypervisor, uuid)
            return None if domain is None else arrival_of(domain)

        try:
            return self._connection.call_aside(f"find how guest {uuid} came", ask, timeout=_LOOK_SECONDS)
        except GuestFailed as failure:
            # These are only figures for users.
            LOG.info("Nobody knows how much came of guest %s: %s %s", uuid, failure.message, failure.details)
            return None

    def abort(self, uuid: str, call: AsideCall[None] | None = None) -> None:
        """Returns when no migration is under way. ``call``: it may be about to begin one, so its end is waited for too.

        Raises `GuestFailed` if the guest runs at the target already, or if the migration does not end in time.
        """
        if call is not None:
            call.do_not_begin()
        end = time.monotonic() + _ABORT_SECONDS
        with self._connection.events.job_ended(uuid) as ended:
            while True:
                past = False
                try:
                    under_way = self._job(uuid) is not None
                    if not under_way and (call is None or call.ended.is_set()):
                        return
                    if under_way:
                        what = f"abort the live migration of guest {uuid}"
                        past = self._connection.call_aside(
                            what, lambda hypervisor: _abort(hypervisor, uuid), timeout=_LOOK_SECONDS
                        )
                except GuestFailed as failure:
                    # The hypervisor does not answer, or the migration has just ended: the next look shows it.
                    LOG.info("Aborting the live migration of guest %s: %s %s", uuid, failure.message, failure.details)
                if past:
                    raise GuestFailed(f"The guest of server {uuid} runs at the target; its migration can't be aborted.")
                if time.monotonic() >= end:
                    raise GuestFailed(f"The live migration of guest {uuid} did not end within {_ABORT_SECONDS:.0f} s.")
                ended.wait(_LOOK_EVERY)
                ended.clear()

    def force(self, uuid: str, *, post_copy: bool) -> None:
        if self._job(uuid) is None:
            raise GuestFailed(f"No live migration of server {uuid} is under way.")
        self._connection.call_aside(
            f"hurry guest {uuid}",
            lambda hypervisor: _force(hypervisor, uuid, post_copy=post_copy),
            timeout=_LOOK_SECONDS,
        )

    def limit(self, uuid: str, bandwidth: float) -> None:
        if self._job(uuid) is not None:
            self._connection.call_aside(
                f"limit the migration of guest {uuid}",
                lambda hypervisor: _limit(hypervisor, uuid, bandwidth),
                timeout=_LOOK_SECONDS,
            )

    def _send(
        self,
        hypervisor: Any,
        uuid: str,
        target: LiveTarget,
        options: LiveOptions,
        must_be_whole: Callable[[list[str]], bool],
    ) -> None:
        domain = hypervisor.lookupByUUIDString(uuid)
        presence.refuse_in_transit(domain)
        source = domain.XMLDesc(MIGRATABLE)
        files, shares = local_disks(source, self._folder_of(uuid)), bool(target.details.get("shared_disks"))
        # Links lead to disks in a folder that both hosts mount.
        disks = [name for name, path in files.items() if not (shares and path.is_symlink())]
        both_open = has_volumes(source) or len(disks) < len(files)
        if not shares:
            disks += disks_in_storage(source)
        if disks and options.block_migration is False:
            raise GuestFailed(f"Server {uuid} has local disks, and its hosts share none: they must be copied along.")
        there = str(target.details["xml"])
        definition_shape.check(there)
        xml = for_target(source, there)
        parameters: dict[str, Any] = {
            # Always: libvirt would take the target's host name, which may resolve to anything.
            libvirt.VIR_MIGRATE_PARAM_URI: f"tcp://{in_uri(checked(target.address))}",
            libvirt.VIR_MIGRATE_PARAM_DEST_XML: xml,
            libvirt.VIR_MIGRATE_PARAM_PERSIST_XML: xml,
        }
        if (name := name_at_target(there, uuid)) != domain.name():
            # Its own is another guest's there.
            parameters[libvirt.VIR_MIGRATE_PARAM_DEST_NAME] = name
        if disks:
            parameters[libvirt.VIR_MIGRATE_PARAM_MIGRATE_DISKS] = disks
        if options.bandwidth:
            parameters[libvirt.VIR_MIGRATE_PARAM_BANDWIDTH] = options.bandwidth
        runs_on = self.settings.trust_emulator or not dirty_memory.is_missed(hypervisor, source)
        if not runs_on:
            LOG.info(
                "Guest %s will stand still while its memory travels: this QEMU emulates it, and is before 9.0", uuid
            )
        if presence.of_domain(domain) is Presence.PAUSED or not runs_on:
            # Post-copy continues a running guest at the target; libvirt refuses it for one that stands still.
            options = replace(options, post_copy=False)
        domain.migrateSetMaxDowntime(self.settings.downtime)
        is_whole = bool(target.details.get("blank_disks")) or must_be_whole(
            [files[name].name for name in disks if name in files]
        )
        flags = flags_of(disks, options, runs_on=runs_on, both_open=both_open, is_whole=is_whole)
        domain.migrateToURI3(self.settings.uri_of(target.address), parameters, flags)

    def _follow(self, uuid: str, call: AsideCall[None] | None, progress: Callable[[LiveProgress], None]) -> None:
        """Returns when the migration has succeeded. ``call``: what runs it; None: somebody else began it.

        Raises `GuestFailed` if the migration fails or the hypervisor hangs. If ``progress`` raises, the migration is aborted.
        """
        last, heard, peers = LiveProgress(), time.monotonic(), PeersOf(uuid)
        with self._connection.events.stopped(uuid) as stopped:
            while True:
                (stopped if call is None else call.ended).wait(_LOOK_EVERY)
                stopped.clear()
                over = call is not None and call.ended.is_set()
                if not over:
                    # QEMU opens its connections one by one.
                    peers.watch()
                try:
                    found = self._job(uuid)
                except GuestFailed as failure:
                    # QEMU is busy, or libvirtd is being restarted.
                    LOG.info("No word of the live migration of guest %s: %s %s", uuid, failure.message, failure.details)
                    silent = time.monotonic() - heard
                    if silent > _STUCK_SECONDS:
                        raise GuestFailed(
                            f"The hypervisor has said nothing of guest {uuid} for {silent:.0f} s in the middle of its live"
                            " migration. The hypervisor hangs, and the guest may stand still. To stop waiting, hard reboot"
                            " the server, or kill its QEMU process on its host."
                        ) from failure
                    if over or call is None:
                        if silent > _SILENT_SECONDS:
                            raise
                        stopped.wait(_LOOK_EVERY)
                else:
                    heard = time.monotonic()
                    if found is not None and found.stands_still and not last.stands_still:
                        self._hurry(uuid)
                    if over and call is not None:
                        if call.error is None or found is None:
                            return _conclude(uuid, call)
                        # Only our connection was lost, or somebody else began one first: a migration is under way.
                        call = None
                    elif call is None and found is None:
                        return self._conclude_joined(uuid)
                    last = found or last
                with undone_on_failure() as undo:
                    undo.callback(self._abort_for, uuid, call)
                    progress(last)

    def _hurry(self, uuid: str) -> None:
        """Lifts the migration's limit: the guest stands still, so the rest of it must go as fast as possible."""
        what = f"hurry guest {uuid}"
        try:
            self._connection.call_aside(
                what,
                lambda hypervisor: hypervisor.lookupByUUIDString(uuid).migrateSetMaxSpeed(_UNLIMITED),
                timeout=_LOOK_SECONDS,
            )
        except GuestFailed as failure:
            # The migration is only slower, or has ended.
            LOG.info("Could not %s: %s %s", what, failure.message, failure.details)

    def _abort_for(self, uuid: str, call: AsideCall[None] | None) -> None:
        """Aborts the migration because of another failure: its own failure is only logged."""
        try:
            self.abort(uuid, call)
        except GuestFailed as failure:
            # It may have ended, or still runs: whoever resumes the move looks.
            LOG.warning(
                "The live migration of guest %s could not be aborted: %s %s", uuid, failure.message, failure.details
            )

    def _conclude_joined(self, uuid: str) -> None:
        """For a migration that somebody else began, and that has ended. Raises `GuestFailed` if the guest is still here."""

        def look(hypervisor: Any) -> bool | None:
            domain = power.find(hypervisor, uuid)
            return None if domain is None else presence.was_handed_over(domain)

        end = time.monotonic() + _UNDEFINE_SECONDS
        what = f"say where guest {uuid} is"
        with self._connection.events.stopped(uuid) as stopped:
            while (is_leaving := self._connection.call(what, look, again=True)) is not None:
                if not is_leaving or time.monotonic() >= end:
                    raise GuestFailed(
                        f"The live migration of server {uuid} was broken off.",
                        details=f"the hypervisor at the source shows the guest {self.presence(uuid)}",
                    )
                stopped.wait(0.1)

    def _job(self, uuid: str) -> LiveProgress | None:
        """How far the migration of this guest to another host has come; None: none is under way."""

        def look(hypervisor: Any) -> LiveProgress | None:
            domain = power.find(hypervisor, uuid)
            stats = None if domain is None else migration_of(domain)
            if stats is None:
                return None
            try:
                stands_still = presence.of_domain(domain) is Presence.PAUSED_FOR_MIGRATION
                return progress_of(stats, post_copy=_is_post_copy(domain), stands_still=stands_still)
            except libvirt.libvirtError as error:
                # The migration has just ended.
                if error.get_error_code() == libvirt.VIR_ERR_NO_DOMAIN:
                    return None
                raise

        return self._connection.call_aside(f"describe the live migration of guest {uuid}", look, timeout=_LOOK_SECONDS)


def flags_of(
    disks: list[str], options: LiveOptions, *, runs_on: bool = True, both_open: bool = False, is_whole: bool = False
) -> int:
    """libvirt's flags of a migration. ``disks``: device names of disks that are copied.

    ``both_open``: others are files or devices that both hosts open: volumes, or disks in a folder that they share.
    ``runs_on``: the guest runs while its memory is copied; if not, libvirt stops it when its disks have been copied.
    ``is_whole``: the disks at the target are blank; else they stand on base images, whose content is not copied.
    """
    flags = (
        libvirt.VIR_MIGRATE_PEER2PEER
        | libvirt.VIR_MIGRATE_PERSIST_DEST
        | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
        | libvirt.VIR_MIGRATE_ABORT_ON_ERROR
    )
    if runs_on:
        flags |= libvirt.VIR_MIGRATE_LIVE
    if disks:
        flags |= libvirt.VIR_MIGRATE_NON_SHARED_DISK if is_whole else libvirt.VIR_MIGRATE_NON_SHARED_INC
    if both_open:
        # libvirt would refuse them. The volume service has allowed it, or it was shown that both hosts see the disks.
        flags |= libvirt.VIR_MIGRATE_UNSAFE
    if options.tls:
        flags |= libvirt.VIR_MIGRATE_TLS
    if options.post_copy:
        flags |= libvirt.VIR_MIGRATE_POSTCOPY
    elif options.auto_converge:
        flags |= libvirt.VIR_MIGRATE_AUTO_CONVERGE
    return int(flags)


def migration_of(domain: Any) -> dict[str, Any] | None:
    """libvirt's figures of the guest's migration to another host; None: none is under way."""
    try:
        stats: dict[str, Any] = domain.jobStats()
    except libvirt.libvirtError as error:
        # The guest is off, is not here, or is arriving.
        if error.get_error_code() in (libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_NO_DOMAIN):
            return None
        raise
    if stats.get("type", libvirt.VIR_DOMAIN_JOB_NONE) == libvirt.VIR_DOMAIN_JOB_NONE:
        return None
    migrates = stats.get(libvirt.VIR_DOMAIN_JOB_OPERATION) == libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT
    return stats if migrates else None


def arrival_of(domain: Any) -> LiveProgress | None:
    """libvirt's figures of the guest's migration to this host; None: libvirt has had another job for it since."""
    kept = libvirt.VIR_DOMAIN_JOB_STATS_COMPLETED | libvirt.VIR_DOMAIN_JOB_STATS_KEEP_COMPLETED
    try:
        stats: dict[str, Any] = domain.jobStats(kept)
    except libvirt.libvirtError as error:
        if error.get_error_code() in (libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_NO_DOMAIN):
            return None
        raise
    came = stats.get(libvirt.VIR_DOMAIN_JOB_OPERATION) == libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_IN
    is_over = stats.get("type") == libvirt.VIR_DOMAIN_JOB_COMPLETED
    return progress_of(stats) if came and is_over else None


def progress_of(stats: dict[str, Any], *, post_copy: bool = False, stands_still: bool = False) -> LiveProgress:
    def of(name: str) -> int:
        return int(stats.get(name, 0))

    return LiveProgress(
        memory_total=of(libvirt.VIR_DOMAIN_JOB_MEMORY_TOTAL),
        memory_processed=of(libvirt.VIR_DOMAIN_JOB_MEMORY_PROCESSED),
        memory_remaining=of(libvirt.VIR_DOMAIN_JOB_MEMORY_REMAINING),
        disk_total=of(libvirt.VIR_DOMAIN_JOB_DISK_TOTAL),
        disk_processed=of(libvirt.VIR_DOMAIN_JOB_DISK_PROCESSED),
        disk_remaining=of(libvirt.VIR_DOMAIN_JOB_DISK_REMAINING),
        post_copy=post_copy,
        stands_still=stands_still and not post_copy,
    )


def _is_post_copy(domain: Any) -> bool:
    """Whether the guest already runs at the target, and the rest of its memory follows."""
    return tuple(domain.state()) == (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_POSTCOPY)


def _conclude(uuid: str, call: AsideCall[None]) -> None:
    if isinstance(call.error, libvirt.libvirtError):
        raise GuestFailed(f"The live migration of server {uuid} failed.", details=str(call.error)) from call.error
    call.answer()


def _abort(hypervisor: Any, uuid: str) -> bool:
    """Aborts the migration, if one is under way. True: it was not aborted, because the guest runs at the target already.

    Then part of its memory is still here, and the guest would be lost without it.
    """
    domain = power.find(hypervisor, uuid)
    if domain is None or migration_of(domain) is None:
        return False
    if _is_post_copy(domain):
        return True
    domain.abortJob()
    return False


def _limit(hypervisor: Any, uuid: str, bandwidth: float) -> None:
    domain = hypervisor.lookupByUUIDString(uuid)
    # One that stands still was forced, or is about to arrive: it goes as fast as it can.
    if presence.of_domain(domain) is Presence.RUNNING:
        domain.migrateSetMaxSpeed(max(1, int(bandwidth / _MIB)) if bandwidth else _UNLIMITED)


def _force(hypervisor: Any, uuid: str, *, post_copy: bool) -> None:
    domain = hypervisor.lookupByUUIDString(uuid)
    if presence.of_domain(domain) is not Presence.RUNNING:
        # It stands still already: it changes nothing any more that would have to be sent again.
        return
    domain.migrateSetMaxSpeed(_UNLIMITED)
    if post_copy:
        try:
            domain.migrateStartPostCopy()
        except libvirt.libvirtError as error:
            # Post-copy was not allowed at the beginning, or the memory does not travel yet.
            LOG.info("Guest %s can't continue at the target by post-copy: %s", uuid, error)
        else:
            return
    domain.suspend()

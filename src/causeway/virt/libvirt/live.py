"""Live migration: a guest goes to another host without stopping. The source's libvirtd does it, together with the target's.

An emulated guest may have to stand still while its memory travels (`dirty_memory`), not while its disks do.

A migration is libvirtd's, not its caller's: it continues when the caller dies, so who asks for one that is under way joins it.
Calls that take long, or may hang when the network dies, have connections of their own (`Connection.call_aside`).
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
from causeway.virt.libvirt import dirty_memory, power, presence
from causeway.virt.libvirt.connection import AsideCall, Connection
from causeway.virt.libvirt.dead_peers import PeersOf
from causeway.virt.libvirt.live_settings import LiveSettings, in_uri
from causeway.virt.libvirt.live_source import MIGRATABLE
from causeway.virt.libvirt.migratable_xml import for_target, has_volumes, local_disks
from causeway.virt.live import LiveOptions, LiveProgress, LiveTarget, Presence
from causeway.virt.undo import undone_on_failure

LOG = logging.getLogger(__name__)

# Seconds between two looks at a migration.
_LOOK_EVERY = 1.0
# A look that takes longer is abandoned; the next one is made.
_LOOK_SECONDS = 10.0
# QEMU hears nothing while it waits for a network that died: as long as TCP does, at most.
_ABORT_SECONDS = 180.0
# A hypervisor that says nothing for so long, of a migration whose call is over, is abandoned.
_SILENT_SECONDS = 180.0
# One whose call is still running is abandoned, too, when nothing can wait for the network any more: TCP ends after 924 s.
_STUCK_SECONDS = 1000.0
# Between the end of a migration and the moment when libvirt at the source undefines the guest.
_UNDEFINE_SECONDS = 15.0
# MiB/s; more than any network.
_UNLIMITED = 1_000_000
_MIB = 1024**2


class LiveMigrations:
    """Those of one host's guests to others. ``folder_of``: the folder of a guest's disks, by its uuid."""

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
        self, uuid: str, target: LiveTarget, options: LiveOptions, progress: Callable[[LiveProgress], None]
    ) -> None:
        call: AsideCall[None] | None = None
        if self._job(uuid) is None:
            options = replace(options, tls=options.tls or self.settings.tls)
            call = self._connection.begin_aside(lambda hypervisor: self._send(hypervisor, uuid, target, options))
        self._follow(uuid, call, progress)

    def progress(self, uuid: str) -> LiveProgress | None:
        return self._job(uuid)

    def arrival(self, uuid: str) -> LiveProgress | None:
        """How much came of a guest that was migrated to this host."""

        def ask(hypervisor: Any) -> LiveProgress | None:
            domain = power.find(hypervisor, uuid)
            return None if domain is None else arrival_of(domain)

        try:
            return self._connection.call_aside(f"find how guest {uuid} came", ask, timeout=_LOOK_SECONDS)
        except GuestFailed as failure:
            # Only figures are missing.
            LOG.info("Nobody knows how much came of guest %s: %s %s", uuid, failure.message, failure.details)
            return None

    def abort(self, uuid: str, call: AsideCall[None] | None = None) -> None:
        """``call``: it may be about to begin a migration, so its end is waited for, too."""
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
                    # It does not answer, or it ended right then: the next look shows it.
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

    def _send(self, hypervisor: Any, uuid: str, target: LiveTarget, options: LiveOptions) -> None:
        domain = hypervisor.lookupByUUIDString(uuid)
        presence.refuse_in_transit(domain)
        source = domain.XMLDesc(MIGRATABLE)
        disks = list(local_disks(source, self._folder_of(uuid)))
        if disks and options.block_migration is False:
            raise GuestFailed(f"Server {uuid} has local disks, and its hosts share none: they must be copied along.")
        xml = for_target(source, str(target.details["xml"]))
        parameters: dict[str, Any] = {
            # Always: libvirt would take the target's host name, which may resolve to anything.
            libvirt.VIR_MIGRATE_PARAM_URI: f"tcp://{in_uri(target.address)}",
            libvirt.VIR_MIGRATE_PARAM_DEST_XML: xml,
            libvirt.VIR_MIGRATE_PARAM_PERSIST_XML: xml,
        }
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
            # It has nothing to continue with; libvirt refuses.
            options = replace(options, post_copy=False)
        domain.migrateSetMaxDowntime(self.settings.downtime)
        flags = flags_of(disks, has_volumes(source), options, runs_on=runs_on)
        domain.migrateToURI3(str(target.details["uri"]), parameters, flags)

    def _follow(self, uuid: str, call: AsideCall[None] | None, progress: Callable[[LiveProgress], None]) -> None:
        """Until the migration is through; ``call`` None: somebody else began it. Raises `GuestFailed` if it failed."""
        last, heard, peers = LiveProgress(), time.monotonic(), PeersOf(uuid)
        with self._connection.events.stopped(uuid) as stopped:
            while True:
                (stopped if call is None else call.ended).wait(_LOOK_EVERY)
                stopped.clear()
                over = call is not None and call.ended.is_set()
                if not over:
                    # Connections are made as the migration proceeds.
                    peers.watch()
                try:
                    found = self._job(uuid)
                except GuestFailed as failure:
                    # QEMU waits for something else, or libvirtd is being restarted.
                    LOG.info("No word of the live migration of guest %s: %s %s", uuid, failure.message, failure.details)
                    silent = time.monotonic() - heard
                    if silent > _STUCK_SECONDS:
                        raise GuestFailed(
                            f"The hypervisor has said nothing of guest {uuid} for {silent:.0f} s in the middle of its live"
                            " migration: it hangs, and the guest may stand still. Hard reboot the server, or have its"
                            " process killed on its host, if it is not to wait for the hypervisor."
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
                        # Only its connection was lost, or somebody else was quicker: it is under way.
                        call = None
                    elif call is None and found is None:
                        return self._conclude_joined(uuid)
                    last = found or last
                with undone_on_failure() as undo:
                    undo.callback(self._abort_for, uuid, call)
                    progress(last)

    def _hurry(self, uuid: str) -> None:
        """What stands still goes as fast as it can, whatever the migration's limit is."""
        what = f"hurry guest {uuid}"
        try:
            self._connection.call_aside(
                what,
                lambda hypervisor: hypervisor.lookupByUUIDString(uuid).migrateSetMaxSpeed(_UNLIMITED),
                timeout=_LOOK_SECONDS,
            )
        except GuestFailed as failure:
            # It is slower, or has ended.
            LOG.info("Could not %s: %s %s", what, failure.message, failure.details)

    def _abort_for(self, uuid: str, call: AsideCall[None] | None) -> None:
        try:
            self.abort(uuid, call)
        except GuestFailed as failure:
            LOG.error(
                "The live migration of guest %s could not be aborted: %s %s", uuid, failure.message, failure.details
            )

    def _conclude_joined(self, uuid: str) -> None:
        """Of a migration that is no longer under way. Raises `GuestFailed` if the guest stays here."""

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
        """Of the migration of this guest to another host; None: none is under way."""

        def look(hypervisor: Any) -> LiveProgress | None:
            domain = power.find(hypervisor, uuid)
            stats = None if domain is None else migration_of(domain)
            if stats is None:
                return None
            stands_still = presence.of_domain(domain) is Presence.PAUSED_FOR_MIGRATION
            return progress_of(stats, post_copy=_is_post_copy(domain), stands_still=stands_still)

        return self._connection.call_aside(f"describe the live migration of guest {uuid}", look, timeout=_LOOK_SECONDS)


def flags_of(disks: list[str], volumes: bool, options: LiveOptions, *, runs_on: bool = True) -> int:
    """``runs_on``: while its memory is copied; if not, libvirt stops the guest when its disks have been copied."""
    flags = (
        libvirt.VIR_MIGRATE_PEER2PEER
        | libvirt.VIR_MIGRATE_PERSIST_DEST
        | libvirt.VIR_MIGRATE_UNDEFINE_SOURCE
        | libvirt.VIR_MIGRATE_ABORT_ON_ERROR
    )
    if runs_on:
        flags |= libvirt.VIR_MIGRATE_LIVE
    if disks:
        flags |= libvirt.VIR_MIGRATE_NON_SHARED_INC
    if volumes:
        # libvirt can't know that both hosts have the volume open; the volume service does.
        flags |= libvirt.VIR_MIGRATE_UNSAFE
    if options.tls:
        flags |= libvirt.VIR_MIGRATE_TLS
    if options.post_copy:
        flags |= libvirt.VIR_MIGRATE_POSTCOPY
    elif options.auto_converge:
        flags |= libvirt.VIR_MIGRATE_AUTO_CONVERGE
    return int(flags)


def migration_of(domain: Any) -> dict[str, Any] | None:
    """What libvirt reports of the guest's migration to another host; None: none is under way."""
    try:
        stats: dict[str, Any] = domain.jobStats()
    except libvirt.libvirtError as error:
        # The guest is off, gone, or comes in.
        if error.get_error_code() in (libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_NO_DOMAIN):
            return None
        raise
    if stats.get("type", libvirt.VIR_DOMAIN_JOB_NONE) == libvirt.VIR_DOMAIN_JOB_NONE:
        return None
    migrates = stats.get(libvirt.VIR_DOMAIN_JOB_OPERATION) == libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT
    return stats if migrates else None


def arrival_of(domain: Any) -> LiveProgress | None:
    """What libvirt counted of the guest's migration to this host; None: that was not the last thing that was done with it."""
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
    """Whether the guest runs at its target already, and its memory comes after it."""
    return tuple(domain.state()) == (libvirt.VIR_DOMAIN_PAUSED, libvirt.VIR_DOMAIN_PAUSED_POSTCOPY)


def _conclude(uuid: str, call: AsideCall[None]) -> None:
    if isinstance(call.error, libvirt.libvirtError):
        raise GuestFailed(f"The live migration of server {uuid} failed.", details=str(call.error)) from call.error
    call.answer()


def _abort(hypervisor: Any, uuid: str) -> bool:
    """Whether it is too late: the guest runs at the target, and would be lost without the memory that is still here."""
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
        # It stands still already: nothing it does keeps the migration from its end.
        return
    domain.migrateSetMaxSpeed(_UNLIMITED)
    if post_copy:
        try:
            domain.migrateStartPostCopy()
        except libvirt.libvirtError as error:
            # Not begun so that it could be done, or the memory does not travel yet.
            LOG.info("Guest %s can't continue at the target by post-copy: %s", uuid, error)
        else:
            return
    domain.suspend()

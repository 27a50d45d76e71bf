"""Copies the disks of a guest while it runs, so that only their last changes must travel while it is off.

The guest is not disturbed. If this is impossible (because the guest does not run, or a driver or release can't do it), the whole
disks travel while the guest is off.
"""

from __future__ import annotations

import logging
import uuid as uuids
from contextlib import suppress
from functools import partial
from typing import ClassVar

from oslo_config import cfg

from causeway import errors, parking
from causeway.clients.rights import SERVICE
from causeway.model.missed import Missed
from causeway.model.outcomes import Snapshot
from causeway.model.things import Thing
from causeway.model.warm import CopiedDisk, CopyRound, WarmCopy
from causeway.moves.dead_hosts import answering, at_source, at_target, clean_target, note_source, note_target
from causeway.moves.move_run import Run
from causeway.moves.recipe import Step
from causeway.moves.steps.direct import require_own_address
from causeway.moves.steps.images import disks_beside_root, make_image
from causeway.sagas.retries import Patience
from causeway.store.database import utcnow
from causeway.virt.driver import ROOT_DISK

LOG = logging.getLogger(__name__)

# So many rounds in a row that are no smaller than the one before: the guest writes faster than they are copied. One alone may be
# something that a guest does once.
_GROWN_ROUNDS = 2
# Bytes a second that any guest may write: it must be able to note that it has to shut down.
_LEAST_LIMIT = 1 << 20
# The number of attempts to connect to a host of another cell. After that, disks go through the image service.
_DIRECT_TRIES = 3


class CopyWhileRunning(Step):
    """Has the target fetch the disks of the running guest: first the whole disks, then their changes, until these are few.

    Undo has the source stop counting changes, and the target delete its copies; if the source is fenced, when it is back.
    """

    name = "CopyWhileRunning"
    reads = frozenset(
        {
            "held_until",
            "keeps_memory",
            "local_devices",
            "old_vm_state",
            "runs_in_error",
            "selection",
            "shared",
            "source_cell",
            "source_host",
            "volume_backed",
        }
    )
    writes = frozenset({"warm"})
    makes = frozenset({Thing.IMAGE, Thing.DISKS})
    first_round: ClassVar[int | None] = 1

    def where(self, run: Run) -> str | None:
        return run.memory.source_host

    def patience(self, run: Run) -> Patience:
        left = self._held_for(run)
        if left > 0:
            return Patience(float("inf"), min(left, run.unguarded.conf.moves.held_round_interval))
        return super().patience(run)

    def do(self, run: Run) -> None:
        if (run.saga.error or {}).get("code") == errors.Held.code:
            # The step was waiting and has not failed, so its patience has not begun.
            run.saga.failing_since = None
        self._copy_if_possible(run)
        run.keep_records(run.memory.source_cell)
        if self._held_for(run) > 0:
            raise errors.Held(
                f"The guest stays at its source until {run.memory.held_until:%Y-%m-%d %H:%M} UTC; its disks are copied meanwhile."
            )

    def _held_for(self, run: Run) -> float:
        """Returns the seconds until a held move may continue; 0 or less if it may continue now."""
        until = run.memory.held_until
        return (until - utcnow()).total_seconds() if until is not None else 0.0

    def _copy_if_possible(self, run: Run) -> None:
        memory = run.memory
        if not _may_copy(run):
            run.in_round(None)
            return
        warm = memory.warm = memory.warm or WarmCopy()
        if warm.ended is not None:
            return
        try:
            self._copy(run, warm)
        except errors.WarmCopyImpossible as failure:
            # Maybe the user has shut the guest down. The changes since the last round are known all the same.
            self._copy_rest_while_off(run, warm, failure)
        except (errors.GuestFailed, errors.DiskTransferFailed) as failure:
            if failure.passes_by_itself:
                raise
            warm.received = None
            self._copy_rest_while_off(run, warm, failure)
        run.in_round(warm.rounds or None)
        run.transferred(warm.sent or None)

    def _copy_rest_while_off(self, run: Run, warm: WarmCopy, failure: errors.CausewayError) -> None:
        LOG.info("Move %s copies the rest of the disks while the guest is off: %s", run.move.id, failure.message)
        warm.ended = failure.message
        _delete_images(run, warm)

    def _copy(self, run: Run, warm: WarmCopy) -> None:
        options, clock = run.services.conf.moves, run.services.clock
        before, grown, began_before = None, 0, None
        while True:
            began = clock.monotonic()
            with answering(run, at_source):
                copied = run.source_computes.begin_round(
                    run.context,
                    run.memory.source_host,
                    token=run.token(self.name),
                    instance=run.source_instance(),
                    block_devices=run.source_devices(),
                    since=warm.received,
                    with_swap=run.memory.keeps_memory,
                )
            warm.rounds += 1
            if not copied.size:
                # Nothing has changed since the last round. Later changes travel while the guest is off.
                return
            # A source that no longer knew what had changed begins anew with everything. That has to arrive.
            is_anew = copied.since is None
            grown = grown + 1 if before is not None and copied.size >= before and not is_anew else 0
            if grown >= _GROWN_ROUNDS:
                # The more of them are copied, the more is left for when the guest is off. What this round would have had, the
                # last changes have too: they count from the round that arrived.
                LOG.info(
                    "Move %s copies no further rounds, since the guest writes faster than they are copied: %d bytes are left",
                    run.move.id,
                    copied.size,
                )
                return
            if not is_anew and began_before is not None:
                warm.change_rate = _rate(copied.size, began - began_before)
                self._limit_writes(run, warm, is_slow=before is not None and copied.size > before * options.throttle)
            before, began_before = copied.size, began
            require_own_address(run, self.name, copied.url)
            at = clock.monotonic()
            warm.sent += self._transfer(run, warm, copied)
            warm.copy_rate = _rate(copied.size, clock.monotonic() - at)
            warm.received = copied.number
            if warm.rounds >= options.warm_rounds or clock.monotonic() - began <= options.warm_round_seconds:
                return
            run.check_wanted()
            run.in_round(warm.rounds + 1)
            run.save(started=run.step)

    def _limit_writes(self, run: Run, warm: WarmCopy, *, is_slow: bool) -> None:
        """``is_slow``: this round is not smaller than the one before by as much as it should be."""
        throttle = run.services.conf.moves.throttle
        if warm.write_limit is None and throttle and is_slow and warm.copy_rate and self._held_for(run) <= 0:
            warm.write_limit = max(_LEAST_LIMIT, round(warm.copy_rate * throttle))
            LOG.info("Move %s limits what the guest writes to %d bytes a second", run.move.id, warm.write_limit)
            # So another conductor keeps to it.
            run.save(started=run.step)
        if warm.write_limit is None:
            return
        # In each round: the source may have lost the round with its limit. A host that can't limit limits nobody.
        with answering(run, at_source), suppress(errors.HostTooOld, errors.NotImplementedHere):
            run.source_computes.limit_writes(
                run.context,
                run.memory.source_host,
                token=run.token(self.name),
                instance=run.source_instance(),
                bytes_per_second=warm.write_limit,
            )

    def _transfer(self, run: Run, warm: WarmCopy, copied: CopyRound) -> int:
        """Transfers a round, directly or as images. Returns how many bytes travelled."""
        # Hosts of one cell always reach one another.
        always_direct = not run.memory.is_cross_cell
        may_be_direct = always_direct or run.services.conf.moves.direct == "auto"
        if may_be_direct and not warm.through_images:
            try:
                with answering(run, at_target):
                    received = run.target_computes.receive_round(
                        run.context,
                        run.memory.target_host,
                        token=run.token(self.name),
                        instance=run.source_instance(),
                        copied=copied,
                    )
                warm.is_direct = True
                return received.sent
            except errors.HostUnreachable as failure:
                if always_direct:
                    raise errors.WarmCopyImpossible(failure.message, details=failure.details) from failure
                LOG.info("Move %s goes through the image service: %s", run.move.id, failure.details)
            except errors.DiskTransferBroken as failure:
                # From another cell, the source's address may lead to a different host, which does not have the offer.
                if always_direct or run.step is None or run.step.attempt < _DIRECT_TRIES:
                    raise
                LOG.info("Move %s goes through the image service: %s", run.move.id, failure.details)
        warm.through_images, warm.is_direct = True, False
        return self._through_images(run, warm, copied)

    def _through_images(self, run: Run, warm: WarmCopy, copied: CopyRound) -> int:
        """Transfers each part of a round as an image. The source sends the next part while the target receives one.

        Returns how many bytes travelled.
        """
        attempt = run.step.attempt if run.step is not None else 1
        parts = [
            (disk, part, _image_id(run, copied, disk, part, attempt))
            for disk in copied.disks
            for part in range(disk.parts)
        ]
        warm.image_ids = [*warm.image_ids, *(image_id for _disk, _part, image_id in parts)]
        run.save()
        sent = 0
        with parking.beside() as helper:
            sending = helper.begin(partial(self._send, run, warm, copied, *parts[0]))
            for at, (disk, part, image_id) in enumerate(parts):
                snapshot = parking.result_of(sending)
                if at + 1 < len(parts):
                    sending = helper.begin(partial(self._send, run, warm, copied, *parts[at + 1]))
                with answering(run, at_target):
                    received = run.target_computes.receive_part(
                        run.context,
                        run.memory.target_host,
                        token=run.token(self.name),
                        instance=run.source_instance(),
                        copied=copied,
                        name=disk.name,
                        part=part,
                        sent=snapshot,
                    )
                sent += round(snapshot.size * disk.scale)
                warm.codings = received.codings
                run.services.images.delete(run.context, image_id, called_as=SERVICE)
        _delete_images(run, warm)
        return sent

    def _send(
        self, run: Run, warm: WarmCopy, copied: CopyRound, disk: CopiedDisk, part: int, image_id: str
    ) -> Snapshot:
        make_image(run, image_id, f"{disk.name}-round-{copied.number}-part-{part}-resize-temp", disk_format="raw")
        return run.source_computes.send_part(
            run.context,
            run.memory.source_host,
            token=run.token(self.name),
            instance=run.source_instance(),
            number=copied.number,
            name=disk.name,
            part=part,
            image_id=image_id,
            codings=[each for each in copied.codings if each in warm.codings],
        )

    def undo(self, run: Run) -> None:
        memory, warm = run.memory, run.memory.warm
        # If a conductor died in the first round, nothing is noted, but the hosts may have a round and copies.
        if warm is None and not _may_copy(run):
            return
        if warm is not None:
            _delete_images(run, warm)
        if at_source(run).is_fenced:
            # The target may have the only copy of the disks. It stays until the source has shown its disks.
            note_source(run, Missed.DISCARD_COPIES)
            note_target(run, memory.target_host, Missed.DISCARD_COPIES)
            memory.warm = None
            return
        # A host that does not know this order has made no rounds or copies.
        with answering(run, at_source), suppress(errors.WarmCopyImpossible):
            run.source_computes.end_rounds(
                run.context, memory.source_host, token=run.token(self.name), instance=run.source_instance()
            )
        with suppress(errors.WarmCopyImpossible):
            clean_target(run, Missed.DISCARD_COPIES, run.source_instance(), [], lambda: self._discard_copies(run))
        memory.warm = None

    def _discard_copies(self, run: Run) -> None:
        run.target_computes.discard_copies(
            run.context, run.memory.target_host, token=run.token(self.name), instance=run.source_instance()
        )


def why_while_off(conf: cfg.ConfigOpts, *, runs: bool, host_can: bool = True) -> str | None:
    """Returns why the local disks of a server travel while its guest is off; None if they are copied while it runs."""
    if not runs:
        return "the server does not run"
    if conf.moves.warm == "never":
        return "[moves] warm is never"
    if not host_can:
        return "its host can't copy the disks of a guest that runs"
    return None


def _may_copy(run: Run) -> bool:
    return why_while_off(run.services.conf, runs=run.memory.was_running) is None and _has_local_disks(run)


def _has_local_disks(run: Run) -> bool:
    """Whether disks travel. Those in storage that both hosts reach stay where they are."""
    memory = run.memory
    travels = not memory.volume_backed and ROOT_DISK not in memory.shared
    return travels or bool(disks_beside_root(run))


def _rate(size: int, seconds: float) -> float | None:
    return size / seconds if seconds > 0 else None


def _image_id(run: Run, copied: CopyRound, disk: CopiedDisk, part: int, attempt: int) -> str:
    return str(uuids.uuid5(uuids.UUID(run.move.id), f"round {copied.number} {disk.name} {part} {attempt}"))


def _delete_images(run: Run, warm: WarmCopy) -> None:
    for image_id in warm.image_ids:
        run.services.images.delete(run.context, image_id, called_as=SERVICE)
    warm.image_ids = []

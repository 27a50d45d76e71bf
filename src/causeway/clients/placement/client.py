"""The Placement client: candidates, claims, the allocations of moves, providers.

Each call costs the real Placement 10 to 20 ms. So their number matters:

- a boot makes two: GET /allocation_candidates and PUT /allocations/{server};
- a resize makes two: GET /allocation_candidates and one POST /allocations, which atomically gives the server's allocations to
  the migration *and* the target's resources to the server;
- confirm makes one (`release_migration`), revert one (`return_allocations`).

The writes name consumer generations. To know them without a GET before each write, the client remembers what it wrote (an
AllocationRecord per consumer, the last ``MEMORY_SIZE`` ones), or the caller passes them. If another process wrote meanwhile,
Placement answers 409 "consumer generation conflict" and changes nothing. Then the records are read (one GET per consumer) and the
write is tried again with them. So a wrong guess costs two or three calls, and never correctness. A generation can't show
that a consumer was deleted and made again, since it counts from 1 again. Therefore a remembered record is only used for a move if
it is on the provider that the caller names as the server's. A conflict that repeats while nothing changes is permanent
(ServiceRefused); consumers that Placement does not show are in `hidden`.

All changes are idempotent: if they are repeated after a crash or a lost answer, they find what is there and succeed.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from keystoneauth1 import loading
from keystoneauth1.adapter import Adapter
from oslo_config.cfg import ConfigOpts
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from causeway import errors
from causeway.clients.placement.hidden import Reader
from causeway.clients.placement.http import PlacementHttp, Refusal, translated
from causeway.clients.placement.kept_disk import left_behind, returned
from causeway.clients.placement.providers import ProviderCalls
from causeway.clients.placement.types import (
    AllocationRecord,
    AllocationRequest,
    Allocations,
    Candidates,
    CandidatesRequest,
    Capacity,
    ProviderSummary,
    RequestGroup,
)
from causeway.clients.placement.writes import Records, Write

LOG = logging.getLogger(__name__)

ATTEMPTS = 4
CONTENDED = "Too many others were claiming on the same host at the same time."
MEMORY_SIZE = 10_000
DEFAULT_TIMEOUT_SECONDS = 30.0
# The largest generation that Placement's databases hold: no consumer is changed that often.
_IMPOSSIBLE = 2**31 - 1
# What Placement calls the project, and the user, of a consumer of which it knows none.
_NOBODY = "00000000-0000-0000-0000-000000000000"
# What every compute node has, in its smallest unit.
_SMALLEST = {"MEMORY_MB": 1}

T = TypeVar("T")


class PlacementClient(ProviderCalls):
    """Placement over a keystoneauth1 adapter. Safe to use from many threads; let them share one, since it has a cache."""

    def __init__(self, adapter: Adapter, *, timeout: float = DEFAULT_TIMEOUT_SECONDS) -> None:
        """``timeout``: seconds, for each single call."""
        super().__init__(PlacementHttp(adapter, timeout))
        self._records = Records(MEMORY_SIZE)

    @property
    def calls(self) -> Counter[str]:
        """How many calls were made since the last reset, by "METHOD /route/{template}"."""
        return self._http.calls

    def reset_calls(self) -> None:
        self._http.reset_calls()

    # What could serve a request

    def allocation_candidates(self, request: CandidatesRequest) -> Candidates:
        """The ways to satisfy a request; empty if there are none.

        Raises ServiceRefused if Placement does not know a requested trait or resource class.
        """
        with translated("to look for hosts"):
            answer = self._http.call("GET", "/allocation_candidates", query=request.to_query())
        return Candidates(
            requests=[
                AllocationRequest(
                    allocations={uuid: held["resources"] for uuid, held in one["allocations"].items()},
                    mappings=one.get("mappings", {}),
                )
                for one in answer["allocation_requests"]
            ],
            providers={
                uuid: ProviderSummary(
                    uuid=uuid,
                    root_uuid=summary["root_provider_uuid"],
                    parent_uuid=summary["parent_provider_uuid"],
                    resources={
                        name: Capacity(amounts["capacity"], amounts["used"])
                        for name, amounts in summary["resources"].items()
                    },
                    traits=frozenset(summary["traits"]),
                )
                for uuid, summary in answer["provider_summaries"].items()
            },
        )

    # What consumers hold

    def get_allocations(self, consumer: str) -> AllocationRecord:
        """The allocations of a server or migration; an empty record if there are none."""
        with translated("to show what a server holds"):
            answer = self._http.call("GET", "/allocations/{consumer}", consumer=consumer)
        record = AllocationRecord(
            consumer_uuid=consumer,
            allocations={uuid: held["resources"] for uuid, held in answer["allocations"].items()},
            generation=answer.get("consumer_generation"),
            project_id=answer.get("project_id", ""),
            user_id=answer.get("user_id", ""),
        )
        self._records.put(record)
        return record

    def claim(
        self, consumer: str, allocations: Allocations, project_id: str, user_id: str, *, replace: bool = True
    ) -> AllocationRecord:
        """Claims for a consumer that holds nothing yet, with one PUT.

        Succeeds also if the consumer holds exactly that already. If it holds something else, replaces it (the claim of an
        alternate host after the first one refused), unless ``replace`` is false. Raises ClaimRefused if there is no room, or what
        is held may not be replaced.
        """
        if not replace:
            return self._claim_first(consumer, allocations, project_id, user_id)
        return self.set_allocations(consumer, allocations, project_id, user_id)

    def _claim_first(self, consumer: str, allocations: Allocations, project_id: str, user_id: str) -> AllocationRecord:
        def write(current: AllocationRecord) -> AllocationRecord:
            change = Write(current, allocations, project_id, user_id)
            self._write(change)
            return change.after

        def again(read: Reader) -> AllocationRecord:
            current = read(consumer)
            if current.is_empty:
                return write(current)
            if current.allocations == allocations:
                return current
            raise errors.ClaimRefused(f"Server {consumer} holds resources already: it is built elsewhere.")

        with translated(
            f"to give server {consumer} its resources",
            no_room=f"There is no room left for server {consumer}.",
            contended=CONTENDED,
        ):
            return self._with_truth(lambda: write(AllocationRecord(consumer)), again, consumer)

    def set_allocations(
        self,
        consumer: str,
        allocations: Allocations,
        project_id: str,
        user_id: str,
        *,
        known: AllocationRecord | None = None,
    ) -> AllocationRecord:
        """Replaces the allocations of a consumer. ``known``: the present ones, as far as the caller knows.

        Raises ClaimRefused if there is no room.
        """
        record = known or self._records.get(consumer) or AllocationRecord(consumer)

        def write(current: AllocationRecord) -> AllocationRecord:
            change = Write(current, allocations, project_id, user_id)
            self._write(change)
            return change.after

        def again(read: Reader) -> AllocationRecord:
            current = read(consumer)
            return current if current.allocations == allocations else write(current)

        with translated(
            f"to give server {consumer} its resources", no_room=f"There is no room left for server {consumer}."
        ):
            return self._with_truth(lambda: write(record), again, consumer)

    def change_allocations(
        self, consumer: str, change: Callable[[Allocations], Allocations], project_id: str, user_id: str
    ) -> AllocationRecord:
        """Replaces the allocations of a consumer by what ``change`` returns for them. Calls it again if they were changed
        meanwhile.

        Raises ClaimRefused if there is no room.
        """

        def work(read: Callable[[str], AllocationRecord]) -> AllocationRecord:
            current = read(consumer)
            wanted = change(current.allocations)
            if wanted == current.allocations:
                return current
            write = Write(current, wanted, project_id, user_id)
            self._write(write)
            return write.after

        with translated(
            f"to change what server {consumer} holds", no_room=f"There is no room left for server {consumer}."
        ):
            return self._with_truth(lambda: work(self.get_allocations), work, consumer)

    def undo_claim(self, claimed: AllocationRecord) -> None:
        """Deletes what a consumer holds if that is still what ``claim`` wrote and returned."""
        if not claimed.is_written:
            return
        consumer = claimed.consumer_uuid
        held = self.get_allocations(consumer)
        if (held.generation, held.allocations) != (claimed.generation, claimed.allocations):
            return
        try:
            with translated(f"to free what {consumer} holds"):
                self._write(Write(held, {}, held.project_id, held.user_id))
        except errors.ServiceRefused as refused:
            if not (isinstance(refused.__cause__, Refusal) and refused.__cause__.is_consumer_conflict):
                raise

    def delete_allocations(self, consumer: str) -> None:
        """Deletes all allocations of a consumer, if it has any.

        If it has none, an earlier write of it may have been broken off in the middle: then the consumer itself is deleted.
        """
        self._records.discard(consumer)
        try:
            with translated(f"to free what {consumer} holds"):
                self._retry(lambda: self._http.call("DELETE", "/allocations/{consumer}", consumer=consumer))
        except errors.ServiceRefused as refused:
            if not (isinstance(refused.__cause__, Refusal) and refused.__cause__.status == 404):
                raise
            self._delete_if_hidden(consumer)

    # Moves: the migration's uuid holds the source's resources until confirm or revert

    def claim_for_move(
        self,
        server: str,
        migration: str,
        target: Allocations,
        project_id: str,
        user_id: str,
        *,
        source_provider: str,
        source: AllocationRecord | None = None,
        keeps_disk: bool = False,
    ) -> AllocationRecord:
        """Gives the server's allocations to the migration, and ``target`` to the server, in one POST.

        ``keeps_disk``: both hosts share the storage of the server's disk, which it keeps (`kept_disk`).
        ``source_provider``: uuid of the compute node that the server is on. ``source``: the server's allocations, if the caller
        knows them; else this client uses what it remembers, or reads them (one more call). If the server has no allocations, the
        migration gets none. Succeeds also if the same was claimed before. Returns the server's new record. Raises ClaimRefused,
        and changes nothing, if the target has no room, others kept claiming there, or the migration has allocations already:
        another conductor has claimed for it.
        """

        def write(held: AllocationRecord, given: AllocationRecord) -> AllocationRecord:
            if not given.is_empty:
                if held.allocations == target:
                    return replace(held, is_written=False)
                raise errors.ClaimRefused(f"The resources of server {server} have been claimed for its move already.")
            change = Write(held, target, project_id, user_id)
            if held.is_empty:
                self._write(change)
            else:
                left = left_behind(held.allocations, target) if keeps_disk else held.allocations
                self._write(Write(given, left, project_id, user_id), change)
            return change.after

        # Always read the server's record before the migration's: if another process returns allocations in between, the server's
        # generation no longer fits.
        def from_memory() -> AllocationRecord:
            held = source or self._records.get(server)
            given = AllocationRecord(migration)
            if self._records.get(migration) is not None:
                held = held or self.get_allocations(server)
                given = self.get_allocations(migration)
            if held is None or (given.is_empty and not held.holds_on(source_provider)):
                held = self.get_allocations(server)
            return write(held, given)

        def from_truth(read: Reader) -> AllocationRecord:
            held = read(server)
            return write(held, read(migration))

        with translated(
            f"to move the resources of server {server}",
            no_room=f"There is no room left for server {server} on the target host.",
            contended=CONTENDED,
        ):
            return self._with_truth(from_memory, from_truth, server, migration)

    def return_allocations(
        self, server: str, migration: str, *, source_provider: str | None = None, disk_gb: int | None = None
    ) -> AllocationRecord:
        """Returns the migration's allocations to the server, and releases those at the target, in one POST.

        If the migration has none, they were returned before and the server keeps what it has, or the server had none when it
        left. So if ``source_provider`` (uuid of the compute node that it left) is given and the server has nothing there, its
        allocations are the target's and are released. ``disk_gb``: of the server before the move, for one that kept its disk;
        None: the move did not change it. Returns the server's record.
        """

        def write(held: AllocationRecord, given: AllocationRecord) -> AllocationRecord:
            if given.is_empty:
                if source_provider is None or held.is_empty or held.holds_on(source_provider):
                    return held
                freed = Write(held, {}, held.project_id, held.user_id)
                self._write(freed)
                return freed.after
            back = returned(given.allocations, held.allocations, disk_gb)
            change = Write(held, back, given.project_id, given.user_id)
            self._write(Write(given, {}, given.project_id, given.user_id), change)
            return change.after

        def from_memory() -> AllocationRecord:
            given, held = self._records.get(migration), self._records.get(server)
            # If memory has nothing to return, it is read.
            if given is None or given.is_empty:
                given = self.get_allocations(migration)
            return write(held or self.get_allocations(server), given)

        def from_truth(read: Reader) -> AllocationRecord:
            return write(read(server), read(migration))

        with translated(
            f"to give server {server} its resources back",
            no_room=f"The resources of server {server} at its old host could not be returned to it: there is no room.",
        ):
            return self._with_truth(from_memory, from_truth, server, migration)

    def release_migration(self, migration: str) -> None:
        """Releases the migration's allocations at the source, after a confirm. Idempotent."""
        self.delete_allocations(migration)

    # Consumers that Placement does not show: see `hidden`

    def is_hidden(self, consumer: str, project_id: str, user_id: str) -> bool:
        """Whether Placement has a consumer without allocations, which it does not show. Asks by a write that it must refuse."""
        probe = Write(AllocationRecord(consumer, generation=_IMPOSSIBLE), {}, project_id, user_id)
        with translated(f"to say whether it has a consumer {consumer}"):
            try:
                self._http.call("PUT", "/allocations/{consumer}", consumer=consumer, body=probe.body())
            except Refusal as refusal:
                if not refusal.is_consumer_conflict:
                    raise
                return refusal.expected is not None and self.get_allocations(consumer).is_empty
        return False

    def delete_hidden(self, consumer: str, project_id: str, user_id: str) -> None:
        """Deletes a consumer that Placement does not show: Placement deletes it with the last one of its allocations.

        Raises ClaimRefused if no provider has room for the smallest one.
        """
        found = self.allocation_candidates(CandidatesRequest([RequestGroup(resources=_SMALLEST)], limit=1))
        if not found.requests:
            raise errors.ClaimRefused(f"No provider has room for the consumer {consumer}, which is to be deleted.")
        claimed = self.claim(consumer, found.requests[0].allocations, project_id, user_id, replace=False)
        with translated(f"to delete consumer {consumer}"):
            # With its generation: whoever claims for the consumer meanwhile keeps what it gets.
            self._write(Write(claimed, {}, project_id, user_id))

    def _delete_if_hidden(self, consumer: str) -> None:
        if not self.is_hidden(consumer, _NOBODY, _NOBODY):
            return
        try:
            self.delete_hidden(consumer, _NOBODY, _NOBODY)
        except errors.ClaimRefused as refused:
            # There is no room, or somebody claims for it now. The audit finds what is left.
            LOG.warning("Placement keeps a consumer %s without allocations: %s", consumer, refused.message)

    # Inside

    def _write(self, *changes: Write) -> None:
        """Writes everything or nothing: one consumer with PUT, several with one POST. Remembers what was written."""
        bodies = {change.before.consumer_uuid: change.body() for change in changes}
        first = changes[0].before.consumer_uuid

        def call() -> Any:
            if len(changes) > 1:
                return self._http.call("POST", "/allocations", body=bodies)
            return self._http.call("PUT", "/allocations/{consumer}", consumer=first, body=bodies[first])

        try:
            self._retry(call)
        except Refusal as refusal:
            if refusal.is_consumer_conflict:
                # Placement looks at the consumers in this order, and names none.
                wrong = (change.before for change in changes if change.before.generation == refusal.sent)
                refusal.consumer = next((record.consumer_uuid for record in wrong), None)
            raise
        except errors.ServiceFailed:
            # Without an answer it is unknown whether this was written.
            for consumer in bodies:
                self._records.discard(consumer)
            raise
        for change in changes:
            if change.after.is_empty:
                self._records.discard(change.after.consumer_uuid)
            else:
                self._records.put(change.after)

    def _retry(self, call: Callable[[], T]) -> T:
        """Repeats a call that lost a race for a provider's generation. Other refusals are raised."""
        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.02, max=1.0),
            retry=retry_if_exception(lambda error: isinstance(error, Refusal) and error.is_provider_conflict),
            reraise=True,
        )
        return retrying(call)

    def _with_truth(self, guess: Callable[[], T], truth: Callable[[Reader], T], *consumers: str) -> T:
        """Calls ``guess``, which uses what is remembered. If a generation was wrong, calls ``truth``, which reads first.

        Raises ServiceRefused if Placement refuses what it shows itself.
        """
        reader = Reader(self.get_allocations)
        try:
            return guess()
        except Refusal as refusal:
            if not refusal.is_consumer_conflict:
                raise
            reader.learn(refusal)
        for consumer in consumers:
            self._records.discard(consumer)
        before: Refusal | None = None

        def work() -> T:
            nonlocal before
            try:
                return truth(reader)
            except Refusal as refusal:
                if not refusal.is_consumer_conflict:
                    raise
                if before is not None and str(before) == str(refusal):
                    raise self._permanent(refusal) from refusal
                reader.learn(refusal)
                before = refusal
                raise

        retrying = Retrying(
            stop=stop_after_attempt(ATTEMPTS - 1),
            wait=wait_random_exponential(multiplier=0.02, max=1.0),
            retry=retry_if_exception(lambda error: isinstance(error, Refusal) and error.is_consumer_conflict),
            reraise=True,
        )
        return retrying(work)

    def _permanent(self, refusal: Refusal) -> errors.ServiceRefused:
        named = f" of consumer {refusal.consumer}" if refusal.consumer is not None else ""
        return errors.ServiceRefused(
            f"Placement refuses the generation{named} that it shows itself, and nobody changes it. An administrator can look"
            " at what Placement has of it.",
            details=str(refusal),
        )


def remote_placement(conf: ConfigOpts) -> PlacementClient:
    """A client for the Placement service that the group [placement] describes (keystoneauth's option names)."""
    auth = loading.load_auth_from_conf_options(conf, "placement")
    session = loading.load_session_from_conf_options(conf, "placement", auth=auth)
    adapter = loading.load_adapter_from_conf_options(conf, "placement", session=session)
    return PlacementClient(adapter, timeout=conf.placement.timeout or DEFAULT_TIMEOUT_SECONDS)

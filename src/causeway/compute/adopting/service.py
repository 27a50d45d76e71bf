"""The compute service of a host that Nova had: it only looks until the host is taken, and again after it was released.

While it looks it serves no order, reports nothing to its cell and to Placement, and touches no guest.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol

from causeway import errors
from causeway.compute.adopting.ownership import Ownership
from causeway.context import RequestContext
from causeway.faults import injector
from causeway.model.found_host import FoundHost, FoundHypervisor, NovaProcess
from causeway.rpc.adopting import TOPIC
from causeway.rpc.endpoint import expose
from causeway.rpc.server import RpcServer
from causeway.rpc.transport import Transport

LOG = logging.getLogger(__name__)

# Seconds between two looks whether a nova-compute runs on a host that was taken from it.
_WATCH_SECONDS = 30.0
_LONGEST_NAMES = 10


class OwnedHost(Protocol):
    """The compute service that runs while the host is Causeway's (`causeway.compute.service.ComputeService`)."""

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def work_under_way(self) -> list[str]: ...

    def close_to_new(self, reason: str | None) -> None: ...


class AdoptingService:
    """``look``: what the hypervisor has. ``make``: makes the compute service anew. ``processes``: each nova-compute here."""

    def __init__(
        self,
        host: str,
        transport: Transport,
        ownership: Ownership,
        *,
        look: Callable[[], FoundHypervisor],
        make: Callable[[], OwnedHost],
        processes: Callable[[], list[NovaProcess]],
    ) -> None:
        self._host = host
        self._ownership = ownership
        self._look = look
        self._make = make
        self._processes = processes
        # One take or release at a time.
        self._lock = threading.Lock()
        self._owned: OwnedHost | None = None
        # Why there may be another owner, as it was said last.
        self._doubt: str | None = None
        self._stopping = threading.Event()
        self._server = RpcServer(transport, TOPIC, host, [expose(AdoptingEndpoint(self), "1.0")], threads=4)
        self._watching = threading.Thread(target=self._watch, name=f"nova-watch-{host}", daemon=True)

    def start(self) -> None:
        """Raises what the start of the compute service raises, if the host is Causeway's."""
        with self._lock:
            if self._ownership.is_taken:
                self._start_if_alone()
            else:
                LOG.warning("Host %s was not taken from Nova yet: this service only looks", self._host)
        self._server.start()
        self._watching.start()

    def stop(self) -> None:
        self._stopping.set()
        self._server.stop()
        with self._lock:
            self._end()

    @property
    def is_owner(self) -> bool:
        return self._owned is not None

    def look(self) -> FoundHost:
        return FoundHost(
            self._host,
            is_taken=self._ownership.is_taken,
            identities=self._ownership.identities(),
            processes=self._processes(),
            hypervisor=self._look(),
        )

    def take(self, node_uuid: str, guests: list[str]) -> None:
        with self._lock:
            if not self._ownership.is_taken:
                self._check_alone()
                self._check_guests(guests)
                self._ownership.take(node_uuid, self._check_alone)
                LOG.warning("Host %s was taken from Nova", self._host)
                injector.reach("adopt.take.marked")
            if self._owned is None:
                self._start_if_alone(refuse=True)

    def release(self) -> None:
        with self._lock:
            # Before the host's service ends, which could not be started again then.
            self._ownership.check_releasable()
            if self._owned is not None:
                under_way = self._owned.work_under_way()
                if under_way:
                    raise errors.Conflict(
                        "Orders are carried out on the host: wait for their end.",
                        details=f"host {self._host}: {', '.join(under_way[:_LONGEST_NAMES])}",
                    )
                self._end()
            injector.reach("adopt.release.ended")
            self._ownership.release()
            LOG.warning("Host %s is Nova's again: this service only looks", self._host)

    def _check_alone(self) -> None:
        running = self._processes()
        if running:
            raise errors.Conflict(
                "A nova-compute runs on the host.",
                details=f"host {self._host}: process {running[0].pid} ({running[0].command})",
            )

    def _check_guests(self, guests: list[str]) -> None:
        here = {guest.uuid for guest in self._look().guests}
        if here != set(guests):
            differing = sorted(here.symmetric_difference(guests))
            raise errors.Conflict(
                "The host has other guests than those that were compared with the records.",
                details=f"host {self._host}: {', '.join(differing[:_LONGEST_NAMES])}",
            )

    def _start_if_alone(self, *, refuse: bool = False) -> None:
        """Starts the compute service of a host that is Causeway's, unless a nova-compute runs beside it."""
        try:
            self._check_alone()
        except errors.Conflict as failure:
            if refuse:
                raise
            LOG.error(
                "Host %s was taken from Nova, and only looks: %s %s", self._host, failure.message, failure.details
            )
            return
        self._ownership.hold_again()
        owned = self._make()
        try:
            owned.start()
        except BaseException:
            owned.stop()
            raise
        self._owned = owned

    def _end(self) -> None:
        owned, self._owned = self._owned, None
        if owned is not None:
            owned.stop()

    def _watch(self) -> None:
        while not self._stopping.wait(_WATCH_SECONDS):
            self.watch()

    def watch(self) -> None:
        """Closes the host to new guests as long as a nova-compute runs beside its compute service."""
        owned = self._owned
        if owned is None:
            return
        try:
            running = self._processes()
        except OSError as failure:
            LOG.error("Whether a nova-compute runs on host %s is unknown: %s", self._host, failure)
            return
        reason = None
        if running:
            reason = f"a nova-compute runs beside it (process {running[0].pid}), though the host was taken from Nova"
            if reason != self._doubt:
                LOG.error("Host %s: %s. Stop it: two services would change the same guests", self._host, reason)
        self._doubt = reason
        owned.close_to_new(reason)


class AdoptingEndpoint:
    """RPC: looks at the host, takes it, releases it."""

    def __init__(self, service: AdoptingService) -> None:
        self._service = service

    def look(self, context: RequestContext) -> FoundHost:  # noqa: ARG002
        return self._service.look()

    def take(self, context: RequestContext, *, node_uuid: str, guests: list[str]) -> None:  # noqa: ARG002
        self._service.take(node_uuid, guests)

    def release(self, context: RequestContext) -> None:  # noqa: ARG002
        self._service.release()

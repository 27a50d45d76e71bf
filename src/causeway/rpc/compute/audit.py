"""Calls of the audit: they list what is on a host, and delete what is orphaned."""

from __future__ import annotations

from causeway.context import RequestContext
from causeway.model.audit import HostContents
from causeway.model.instance import Instance
from causeway.model.shared_disk import StoredDisk
from causeway.rpc.compute.of_shared_disks import shares_no_disks
from causeway.rpc.declare import Client, call


class AuditCalls(Client):
    """A part of `causeway.rpc.compute.ComputeClient`."""

    @call(since="1.14")
    def list_host(self, context: RequestContext, host: str) -> HostContents:
        """Returns everything that is on a host."""

    @call(since="1.18", monitor=True, too_old=shares_no_disks)
    def list_storage(self, context: RequestContext, host: str) -> list[StoredDisk]:
        """Returns all disks in the store that the host shares with others."""

    @call(since="1.18", monitor=True, too_old=shares_no_disks)
    def remove_from_storage(self, context: RequestContext, host: str, *, name: str) -> None:
        """Deletes a disk in the store that belongs to no server any more. Raises GuestFailed if somebody has it open."""

    @call(since="1.14")
    def remove_leftover_claim(
        self, context: RequestContext, host: str, *, instance_uuid: str, migration_uuid: str | None
    ) -> None:
        """Releases an orphaned claim."""

    @call(since="1.14")
    def restore_claim(
        self, context: RequestContext, host: str, *, instance: Instance, migration_uuid: str | None
    ) -> None:
        """Claims what the server holds according to its record. Raises ClaimRefused if others hold it."""

    @call(since="1.14")
    def remove_leftover_file(self, context: RequestContext, host: str, *, name: str) -> None:
        """Deletes a file that a transfer left in the image cache."""

    @call(since="1.14")
    def remove_leftover_disks(self, context: RequestContext, host: str, *, instance_uuid: str, stashed: bool) -> None:
        """Deletes the disks of a server that has no guest there. Raises InvalidState if it has one."""

"""Lists what is on a host, so that the audit can compare it with the records (`causeway.audit`). Deletes what is orphaned."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial

from causeway import errors
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.audit import HostContents, OrphanedFile
from causeway.model.shared_disk import StoredDisk

# Names of snapshots that a move received, and of incomplete downloads, which are never images in use.
ORPHANED = re.compile(r"^(\.[^/]+\.partial|[0-9a-f-]{36}\.part-of-[0-9a-f-]{36})$")

# What the host has of a server for work that is under way: its disks that are offered to other hosts, read while its guest runs,
# or assembled here; notes about its departure; its rescue disk; and what the driver makes beside the folders of guests.
OF_SERVERS = re.compile(r"^([a-z]+)\.part-of-([0-9a-f-]{36})$")
# A disk of a server in storage that several hosts share.
OF_STORAGE = re.compile(r"^([0-9a-f-]{36})_disk[a-z0-9.]*$")


class InventoryEndpoint:
    """RPC: lists what is on the host, and deletes what is orphaned."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def list_host(self, context: RequestContext) -> HostContents:  # noqa: ARG002
        driver = self._host.driver
        contents = HostContents(
            guests=driver.list_guests(), claims=self._host.claims.listed(), storage=driver.storage()
        )
        for uuid, is_stashed in driver.list_disks().items():
            if is_stashed:
                contents.stashed.append(uuid)
            # A server with both kinds is shown as stashed only.
            if not is_stashed or driver.inspect(uuid).has_disks:
                contents.disks.append(uuid)
        contents.rescue_disks = [uuid for uuid in contents.disks if driver.has_rescue_disk(uuid)]
        with_devices = {claim.instance_uuid for claim in contents.claims if claim.pci_addresses}
        known = {uuid: driver.port_devices(uuid) for uuid in with_devices.intersection(contents.guests)}
        contents.port_devices = {uuid: found for uuid, found in known.items() if found is not None}
        # As long as a move keeps the disks themselves, it may need the offers of them too.
        found = {kind: set(servers) for kind, servers in driver.list_temporary_files().items()}
        found["offers"] = self._host.offers.servers() - set(contents.stashed)
        found["rounds"] = self._host.rounds.servers() | found.get("rounds", set())
        found["copies"] = self._host.copies.servers()
        found["departures"] = set(self._host.departures.servers())
        for kind, servers in found.items():
            contents.leftover_files += [OrphanedFile(f"{kind}.part-of-{uuid}", 0.0) for uuid in sorted(servers)]
        now = time.time()
        for path in self._host.image_cache.directory.iterdir():
            if ORPHANED.match(path.name):
                try:
                    contents.leftover_files.append(OrphanedFile(path.name, max(0.0, now - path.stat().st_mtime)))
                except FileNotFoundError:
                    # An operation deleted the file just now.
                    continue
        return contents

    def list_storage(self, context: RequestContext) -> list[StoredDisk]:  # noqa: ARG002
        return self._host.driver.list_storage()

    def remove_from_storage(self, context: RequestContext, *, name: str) -> None:  # noqa: ARG002
        """Raises BadRequest unless it is the name of a server's disk."""
        match = OF_STORAGE.match(name)
        if match is None:
            raise errors.BadRequest(f"{name!r} is not the name of a server's disk in storage.")
        with self._host.lock(match[1]):
            self._host.driver.remove_from_storage(name)

    def remove_leftover_file(self, context: RequestContext, *, name: str) -> None:  # noqa: ARG002
        """Deletes one of ``leftover_files``, or a rescue disk that no guest has, if it exists.

        Raises BadRequest for any other file, GuestFailed if a guest has the rescue disk.
        """
        host = self._host
        discards: dict[str, Callable[[str], None]] = {
            kind: partial(host.driver.discard_temporary_files, kind) for kind in host.driver.list_temporary_files()
        }
        discards |= {
            "offers": host.offers.end_all,
            "rounds": host.rounds.discard_all,
            "copies": host.copies.discard_all,
            "departures": host.departures.discard,
            "rescue": host.driver.delete_rescue_disk,
        }
        match = OF_SERVERS.match(name)
        if match is not None and match[1] in discards:
            with host.lock(match[2]):
                discards[match[1]](match[2])
        elif ORPHANED.match(name):
            host.image_cache.path(name).unlink(missing_ok=True)
        else:
            raise errors.BadRequest(f"{name!r} is not the name of an orphaned file of a transfer.")

    def remove_leftover_disks(self, context: RequestContext, *, instance_uuid: str, stashed: bool) -> None:  # noqa: ARG002
        """Deletes disks (or stashed disks) of a server that has no guest here. Raises InvalidState if it has one."""
        driver = self._host.driver
        with self._host.lock(instance_uuid):
            if driver.inspect(instance_uuid).power_state is not None:
                raise errors.InvalidState(
                    f"The disks of server {instance_uuid} are kept: it has a guest on this host.",
                    details=f"host {self._host.name}",
                )
            if stashed:
                driver.delete_stashed_disks(instance_uuid)
            else:
                driver.delete_disks(instance_uuid)

"""Lists what is on a host, so that the audit can compare it with the records (`causeway.audit`). Deletes what is orphaned."""

from __future__ import annotations

import re
import time

from causeway import errors
from causeway.compute.host import Host
from causeway.context import RequestContext
from causeway.model.audit import HostContents, OrphanedFile

# Names of snapshots that a move received, and of incomplete downloads, which are never images in use.
ORPHANED = re.compile(r"^(\.[^/]+\.partial|[0-9a-f-]{36}\.part-of-[0-9a-f-]{36})$")

# Names of a server's disks that are offered to other hosts, read while its guest runs, or assembled here; and of its rescue disk.
OF_SERVERS = re.compile(r"^(offers|rounds|copies|rescue)\.part-of-([0-9a-f-]{36})$")


class InventoryEndpoint:
    """RPC: lists what is on the host, and deletes what is orphaned."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def list_host(self, context: RequestContext) -> HostContents:  # noqa: ARG002
        driver = self._host.driver
        contents = HostContents(guests=driver.list_guests(), claims=self._host.claims.listed())
        for uuid, is_stashed in driver.list_disks().items():
            if is_stashed:
                contents.stashed.append(uuid)
            # A server with both kinds is shown as stashed only.
            if not is_stashed or driver.inspect(uuid).has_disks:
                contents.disks.append(uuid)
        contents.rescue_disks = [uuid for uuid in contents.disks if driver.has_rescue_disk(uuid)]
        # As long as a move keeps the disks themselves, it may need the offers of them too.
        for uuid in self._host.offers.servers() - set(contents.stashed):
            contents.leftover_files.append(OrphanedFile(f"offers.part-of-{uuid}", 0.0))
        for kind, servers in (("rounds", self._host.rounds.servers()), ("copies", self._host.copies.servers())):
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

    def remove_leftover_file(self, context: RequestContext, *, name: str) -> None:  # noqa: ARG002
        """Deletes one of ``leftover_files``, or a rescue disk that no guest has, if it exists.

        Raises BadRequest for any other file, GuestFailed if a guest has the rescue disk.
        """
        if (match := OF_SERVERS.match(name)) is not None:
            kind, uuid = match.groups()
            if kind == "offers":
                self._host.offers.end_all(uuid)
            elif kind == "rounds":
                self._host.rounds.discard_all(uuid)
            elif kind == "copies":
                self._host.copies.discard_all(uuid)
            else:
                with self._host.lock(uuid):
                    self._host.driver.delete_rescue_disk(uuid)
            return
        if not ORPHANED.match(name):
            raise errors.BadRequest(f"{name!r} is not the name of an orphaned file of a transfer.")
        self._host.image_cache.path(name).unlink(missing_ok=True)

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

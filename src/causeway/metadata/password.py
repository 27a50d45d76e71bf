"""The password of a guest, which posts it once, encrypted with its user's key. The Compute API shows it to the user."""

from __future__ import annotations

import sqlalchemy as sa

from causeway import errors
from causeway.model.guest_password import MOST_BYTES, password_in, with_password
from causeway.store import servers
from causeway.store.cell import instances
from causeway.store.cells import Cells


def show(cells: Cells, server_id: str, cell_uuid: str) -> str:
    """The password, or an empty text if none was posted. Always read anew: it may have changed. Raises ServerNotFound."""
    return password_in(instances.get(cells.database(cell_uuid), server_id, with_tags=False).system_metadata)


def keep(cells: Cells, server_id: str, cell_uuid: str, posted: bytes) -> None:
    """Stores a posted password. Raises BadRequest, Conflict (there is one already), ServerNotFound."""
    if len(posted) > MOST_BYTES:
        raise errors.BadRequest("Request is too large.")
    try:
        password = posted.decode("ascii")
    except UnicodeDecodeError:
        raise errors.BadRequest("A password must be encrypted and encoded with base64.") from None

    def write(connection: sa.Connection) -> None:
        known = instances.get_in(connection, server_id, with_tags=False).system_metadata
        if password_in(known):
            raise errors.Conflict("There is a password already. It can be posted again when its user has cleared it.")
        instances.update_in(connection, server_id, system_metadata=with_password(known, password))

    servers.change(cells, server_id, cell_uuid, write)

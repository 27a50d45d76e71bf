"""All databases of a Nova deployment, found from a nova.conf of its API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from causeway import conf as configuration
from causeway.adopt.nova import tables
from causeway.adopt.nova.database import NovaDatabase, Row
from causeway.errors import Misconfigured
from causeway.model.host import CELL0_UUID


@dataclass(frozen=True)
class NovaCell:
    """``row_id``: Nova's number of it. ``name``: cell0 for that of servers without a host."""

    row_id: int
    uuid: str
    name: str
    database: NovaDatabase

    @property
    def is_cell0(self) -> bool:
        return self.uuid == CELL0_UUID


class NovaCloud:
    """Opened databases; a context manager. ``files``: of a role that has the API database, as Nova reads them.

    ``writable``: for what is handed back; else no session can write.

    Raises Misconfigured, with what to do, if one can't be opened.
    """

    def __init__(self, files: Iterable[Path], *, writable: bool = False) -> None:
        self._writable = writable
        self.conf = _read(files)
        self._cleanup = ExitStack()
        try:
            self.api = self._open(self.conf.api_database.connection, "API", "api")
            self.cells = [
                NovaCell(row["id"], row["uuid"], _name(row), self._open(self._url(row), _name(row), "cell"))
                for row in self.api.rows(tables.CELL_MAPPINGS)
            ]
        except BaseException:
            self._cleanup.close()
            raise
        self._by_row = {cell.row_id: cell for cell in self.cells}

    @property
    def name_template(self) -> str:
        """Of guests' names: that of the files, or Nova's own. It is to be the same for all computes."""
        if self.conf.get_location("instance_name_template").location is cfg.Locations.opt_default:
            return "instance-%08x"
        return str(self.conf.instance_name_template)

    def cell_of(self, row_id: int | None) -> NovaCell | None:
        """The cell with Nova's number; None if there is none: a server that was not scheduled yet has none."""
        return None if row_id is None else self._by_row.get(row_id)

    def _open(self, url: str | None, name: str, kind: Any) -> NovaDatabase:
        if not url:
            raise Misconfigured(
                f"No URL of Nova's database {name} is known: give the nova.conf of a role that has it, as the API's."
            )
        opened = NovaDatabase(url, name, kind, writable=self._writable)
        self._cleanup.callback(opened.close)
        return opened

    def _url(self, row: Row) -> str:
        """Its URL may have parts of that of ``[database] connection`` in it, as "{hostname}"."""
        return _filled_in(str(row["database_connection"]), self.conf.database.connection, _name(row))

    def __enter__(self) -> NovaCloud:
        return self

    def __exit__(self, *_raised: object) -> None:
        self._cleanup.close()


def _read(files: Iterable[Path]) -> cfg.ConfigOpts:
    try:
        return configuration.read_unchecked(files)[0]
    except (cfg.ConfigFilesNotFoundError, cfg.ConfigFilesPermissionDeniedError, cfg.ConfigFileParseError) as failure:
        # The text of a file that can't be parsed has its line, which may be a password.
        raise Misconfigured(f"A nova.conf can't be read: {type(failure).__name__}.") from None


def _name(row: Row) -> str:
    return "cell0" if row["uuid"] == CELL0_UUID else row["name"] or row["uuid"]


def _filled_in(template: str, default: str | None, name: str) -> str:
    """Nova fills in the parts of its own URL: https://docs.openstack.org/nova/latest/admin/cells.html, "Template URLs"."""
    if "{" not in template:
        return template
    if not default:
        raise Misconfigured(
            f"The URL of Nova's database {name} is a template, and no [database] connection fills it in."
        )
    url = sa.make_url(default)
    query = "&".join(f"{key}={value}" for key, value in url.query.items())
    known: dict[str, Any] = {
        "scheme": url.drivername,
        "username": url.username or "",
        "password": url.password or "",
        "hostname": url.host or "",
        "port": url.port or "",
        "path": url.database or "",
        "query": query,
    }
    try:
        fill: Callable[..., str] = template.format
        return fill(**known)
    except (KeyError, IndexError, ValueError) as failure:
        raise Misconfigured(f"The URL of Nova's database {name} is a template that can't be filled in.") from failure


__all__ = ["NovaCell", "NovaCloud"]

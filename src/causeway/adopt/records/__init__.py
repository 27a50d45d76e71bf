"""What each record of Nova's is for Causeway. Functions of rows: nothing here reads or writes a database or asks a service."""

from __future__ import annotations

from causeway.adopt.records.server_rows import ServerRows
from causeway.adopt.records.servers import ImportedServer, server_of

__all__ = ["ImportedServer", "ServerRows", "server_of"]

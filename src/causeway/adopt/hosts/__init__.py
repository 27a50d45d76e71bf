"""One host on its way from Nova to Causeway, and back.

`compare` says where what is found on a host differs from the records: functions of plain data, which ask nobody. `taking` reads
the databases, asks hosts, and takes and releases them.
"""

from __future__ import annotations

from causeway.adopt.hosts.comparison import compare
from causeway.adopt.hosts.recorded import RecordedHost, RecordedServer

__all__ = ["RecordedHost", "RecordedServer", "compare"]

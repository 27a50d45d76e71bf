"""What was seen on hosts themselves (`causeway adopt look --json` there), compared with Nova's records of their servers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from causeway.adopt.check import findings
from causeway.adopt.check.findings import Finding, Subject, Verdict
from causeway.adopt.check.hosts import HostRecords
from causeway.adopt.check.servers import Around, servers_of
from causeway.adopt.hosts import RecordedHost, RecordedServer, compare
from causeway.errors import Misconfigured
from causeway.model.found_host import FoundHost

#: of the codes of these findings, before the kinds of docs/architecture/hosts-of-nova.md
PREFIX = "look."
# What the records themselves are checked for.
_OF_RECORDS = frozenset({"server.unsettled"})


def read(files: Iterable[Path]) -> dict[str, FoundHost]:
    """Host -> what was seen there. Raises Misconfigured for a file that is none of a look."""
    seen = {}
    for path in files:
        try:
            found = msgspec.json.decode(path.read_bytes(), type=FoundHost)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as failure:
            raise Misconfigured(f"{path} is not what `causeway adopt look --json` prints: {failure}.") from failure
        seen[found.host] = found
    return seen


def of_host(seen: FoundHost, records: HostRecords, around: Around) -> Iterator[Finding]:
    """The servers of one host are in memory together, and no others."""
    node = records.nodes[0] if records.nodes else {}
    names: dict[str, str] = {}
    recorded = RecordedHost(records.name, node.get("uuid"), node.get("hypervisor_hostname"))
    unread: set[str] = set()
    for server in servers_of(around, records.cell, records.name):
        names[server.uuid] = server.row["display_name"] or ""
        if server.imported is None:
            unread.add(server.uuid)
        else:
            recorded.servers.append(RecordedServer(server.imported.instance, server.imported.block_devices))
    for each in compare(seen, recorded):
        # A guest of a server whose record has a finding of its own is not an unknown one.
        if each.kind in _OF_RECORDS or each.subject in unread:
            continue
        subject, what = _subject(each.subject, records.name, names), each.what
        if subject.id != each.subject:
            what = f"{each.subject}: {what}"
        verdict = Verdict.BLOCKS if each.blocks else Verdict.DIFFERS
        yield Finding(subject, verdict, PREFIX + each.kind, what, each.remedy)


def _subject(named: str, host: str, names: dict[str, str]) -> Subject:
    """A server of the host, or the host: also for a guest that no record names."""
    return findings.server(named, names[named]) if named in names else findings.host(host)


__all__ = ["PREFIX", "of_host", "read"]

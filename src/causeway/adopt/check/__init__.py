"""The check before a cloud that runs Nova is taken over: read only, days before, as often as wanted.

It reads the records of all servers and hosts, the files of Nova's roles, and what Placement, Neutron and Cinder know, and says of
each server, host and option whether it goes as it is, goes with a difference, or blocks, and what to do then.

Where to read what::

    cloud_check  one check, in order           findings, codes, report  what is found, every code, all of it
    roles        options and rules             hosts, mappings          their records, compared with one another
    servers      batches of servers' records   standing, belongings     checks of one server: pure functions
    services     clients of the services       places                   Placement and Neutron against the records
    looks        what was seen on hosts, compared by `causeway.adopt.hosts`

Memory does not grow with what is recorded of servers: batches of them are read, and only ids and findings are kept.
"""

from __future__ import annotations

from causeway.adopt.check.cloud_check import Asked, check
from causeway.adopt.check.codes import CODES
from causeway.adopt.check.findings import Finding, Kind, Subject, Verdict
from causeway.adopt.check.report import NotChecked, Report
from causeway.adopt.check.roles import ComputeFiles

__all__ = ["CODES", "Asked", "ComputeFiles", "Finding", "Kind", "NotChecked", "Report", "Subject", "Verdict", "check"]

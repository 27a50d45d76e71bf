"""Copies the records of a Nova deployment into Causeway's databases.

Everything is read in batches. What was imported before and is the same now is not written again (`causeway.store.api.adoptions`),
so an import that died, or that is old, is just repeated. Nova's databases are only read.
"""

from __future__ import annotations

from causeway.adopt.importing.cloud import import_cloud
from causeway.adopt.importing.report import Counts, ImportReport, LeftOut

__all__ = ["Counts", "ImportReport", "LeftOut", "import_cloud"]

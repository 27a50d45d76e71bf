"""A cloud whose records and services tests bring to disagree, and its audit."""

from __future__ import annotations

from typing import Any

from causeway.audit import Disagreement, Report, audit_embedded
from tests.functional.servers.moves_cloud import Cloud


class AuditedCloud(Cloud):
    """A cloud whose records and services tests bring to disagree."""

    def audit(self, **options: Any) -> Report:
        return audit_embedded(self.parts, pause=0.01, **options)

    def only(self, kind: str, **options: Any) -> Disagreement:
        """The one disagreement that there is, which must be of this kind."""
        report = self.audit(**options)
        assert [found.kind for found in report.disagreements] == [kind], report.disagreements
        return report.disagreements[0]

    def fixes(self, kind: str) -> None:
        """``--fix`` ends a disagreement of this kind, and leaves nothing."""
        report = self.audit(fix=True)
        assert kind in [found.kind for found in report.fixed], report
        assert report.disagreements == [] and self.audit().is_clean

    def only_reports(self, kind: str) -> None:
        """``--fix`` does nothing about the one disagreement that there is, and says why."""
        report = self.audit(fix=True)
        assert report.fixed == []
        assert [found.kind for found in report.disagreements] == [kind]
        assert report.disagreements[0].left

    def other_host(self, server: Any) -> str:
        """A host of the server's cell that it is not on."""
        host = self.show(server).compute_host
        return next(name for name in self.parts.computes if name[:5] == host[:5] and name != host)

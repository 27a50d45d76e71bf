"""An embedded cloud for each test module (see `moves_cloud`), and its audit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moves_cloud import Cloud, until

from causeway.audit import Disagreement, Report, audit_embedded
from causeway.embedded.cloud import EmbeddedCloud


class AuditedCloud(Cloud):
    """A cloud whose records and services tests bring to disagree."""

    def audit(self, **options: Any) -> Report:
        return audit_embedded(self.embedded, pause=0.01, **options)

    def only(self, kind: str, **options: Any) -> Disagreement:
        """The one disagreement that there is, which must be of this kind."""
        report = self.audit(**options)
        assert [found.kind for found in report.disagreements] == [kind], report.disagreements
        return report.disagreements[0]

    def mends(self, kind: str) -> None:
        """``--fix`` ends a disagreement of this kind, and leaves nothing."""
        report = self.audit(fix=True)
        assert kind in [found.kind for found in report.mended], report
        assert report.disagreements == [] and self.audit().is_clean

    def leaves(self, kind: str) -> None:
        """``--fix`` does nothing about the one disagreement that there is, and says why."""
        report = self.audit(fix=True)
        assert report.mended == []
        assert [found.kind for found in report.disagreements] == [kind]
        assert report.disagreements[0].left

    def other_host(self, server: Any) -> str:
        """A host of the server's cell that it is not on."""
        host = self.show(server).compute_host
        return next(name for name in self.embedded.computes if name[:5] == host[:5] and name != host)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCloud]:
    cloud = EmbeddedCloud(Path(tmp_path_factory.mktemp("cloud")), port=0, cells=2, hosts_per_cell=2)
    cloud.start()
    yield cloud
    cloud.stop()


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> AuditedCloud:
    return AuditedCloud(embedded)


@pytest.fixture
def cloud(module_cloud: AuditedCloud) -> Iterator[AuditedCloud]:
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    for server in list(module_cloud.admin.compute.servers()):
        module_cloud.admin.compute.delete_server(server.id)
    until(lambda: list(module_cloud.admin.compute.servers()), lambda left: not left, "the servers of the test to go")

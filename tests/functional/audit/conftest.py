"""An embedded cloud for each test module (see `moves_cloud`), and its audit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.conftest import cloud_options, deployed, embedded

__all__ = ["cloud_options", "deployed", "embedded"]


@pytest.fixture(scope="module")
def module_cloud(embedded: EmbeddedCloud) -> AuditedCloud:
    return AuditedCloud(embedded)


@pytest.fixture
def cloud(module_cloud: AuditedCloud) -> Iterator[AuditedCloud]:
    yield module_cloud
    module_cloud.heal()
    module_cloud.settle()
    module_cloud.clean()

"""One cloud of Nova, with one population, for all tests here: it takes minutes. Each test leaves it as it found it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.integration.adopt.nova_cloud import NovaCloud, nova_cloud_here
from tests.integration.adopt.population import USUAL, Population, Populator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)
            item.add_marker(pytest.mark.libvirt)


@pytest.fixture(scope="session")
def cloud() -> Iterator[NovaCloud]:
    with nova_cloud_here() as cloud:
        yield cloud


@pytest.fixture(scope="session")
def populator(cloud: NovaCloud) -> Iterator[Populator]:
    with closing(Populator(cloud)) as populator:
        yield populator


@pytest.fixture(scope="session")
def population(populator: Populator) -> Population:
    return populator.populate(USUAL)

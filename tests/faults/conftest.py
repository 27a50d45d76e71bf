"""Clouds to break; see `clouds.site`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.clouds.roles_site import RolesSite
from tests.faults.clouds.site import ChildSite, LocalSite


@pytest.fixture(scope="module")
def local_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSite]:
    """In this process, with two conductors that share the moves."""
    with LocalSite(Path(tmp_path_factory.mktemp("local")), conductors=2) as site:
        assert isinstance(site, LocalSite)
        yield site


@pytest.fixture(scope="module")
def child_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChildSite]:
    """In a process of its own, which can be killed."""
    with ChildSite(Path(tmp_path_factory.mktemp("child"))) as site:
        assert isinstance(site, ChildSite)
        yield site


@pytest.fixture(scope="module")
def roles_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesSite]:
    """With two conductors in processes of their own."""
    with RolesSite(Path(tmp_path_factory.mktemp("roles"))) as site:
        assert isinstance(site, RolesSite)
        yield site


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSite]:
    """As `local_site`, with hosts that keep their guests' disks in one store."""
    with LocalSite(Path(tmp_path_factory.mktemp("shared")), conductors=2).share_storage() as site:
        assert isinstance(site, LocalSite)
        yield site


@pytest.fixture(scope="module")
def apart_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalSite]:
    """As `shared_site`, with one store of each cell."""
    with LocalSite(Path(tmp_path_factory.mktemp("apart")), conductors=2).share_storage("per cell") as site:
        assert isinstance(site, LocalSite)
        yield site

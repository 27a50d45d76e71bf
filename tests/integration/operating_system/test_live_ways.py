"""Debian writes files and holds a session while it goes live to other hosts and cells, and near-live back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.operating_system import ways
from tests.integration.operating_system.debian_servers import Debian, Debians, check_clock
from tests.integration.operating_system.load import USER_DATA, Session, check_files, check_it_writes


@pytest.fixture(scope="module")
def debian(debians: Debians) -> Debian:
    return debians.booted("busy", image="debian-uefi", config_drive=True, user_data=USER_DATA)


WAYS: dict[str, tuple[Callable[[Debian], str], Callable[[Debian, str], str], str]] = {
    "in a cell": (lambda debian: debian.cloud.other_host(debian.server), ways.live, ""),
    "across cells": (ways.other_cell, ways.live, "live_migration"),
    "near-live across cells": (ways.other_cell, ways.near_live, "near_live_migration"),
}


@pytest.mark.parametrize("way", WAYS)
def test_debian_arrives_whole_and_continues(debian: Debian, way: str) -> None:
    target, move, recipe = WAYS[way]
    check_it_writes(debian)
    check_clock(debian)
    boot = debian.boot_id()
    with Session(debian) as session:
        assert move(debian, target(debian)) == recipe
        session.check_it_continues()
    assert debian.boot_id() == boot
    check_it_writes(debian)
    assert check_files(debian, session.reported) > 10
    check_clock(debian)
    assert debian.run("systemctl --failed --no-legend") == ""
    assert debian.cloud.audit().is_clean

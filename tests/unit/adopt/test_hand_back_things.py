"""Once the whole cloud was Causeway's, flavors, key pairs, aggregates, groups and limits are handed back too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.adopt.hand_back import HandBack, HandedBack
from causeway.adopt.nova import NovaCloud
from causeway.model.flavor import Flavor
from causeway.model.instance import KeyPair
from causeway.store.api import adoptions, aggregates, flavors, groups, keypairs, quotas
from causeway.store.database import Database
from tests.unit.adopt.causeway_databases import OurDatabases, our_databases
from tests.unit.adopt.nova_cloud import ROWS, NovaOnDisk
from tests.unit.adopt.test_hand_back import import_from

FLAVOR, USER = ROWS["api"]["flavors"][0]["flavorid"], ROWS["api"]["key_pairs"][0]["user_id"]
PROJECT = ROWS["api"]["quotas"][0]["project_id"]


@pytest.fixture
def nova(tmp_path: Path) -> NovaOnDisk:
    made = NovaOnDisk(tmp_path)
    made.execute("api", "INSERT INTO quota_classes (class_name, resource, hard_limit) VALUES ('default', 'ram', 7)")
    made.execute(
        "api",
        f"INSERT INTO project_user_quotas (project_id, user_id, resource, hard_limit) VALUES ('{PROJECT}', 'u', 'ram', 3)",
    )
    return made


@pytest.fixture
def ours(nova: NovaOnDisk, tmp_path: Path) -> Iterator[OurDatabases]:
    with our_databases(tmp_path) as made:
        import_from(nova, made)
        yield made


def handed_back(nova: NovaOnDisk, ours: OurDatabases) -> HandedBack:
    with NovaCloud([nova.conf], writable=True) as cloud:
        return HandBack(cloud, ours.api, ours.cells, frozenset()).run()


def test_before_the_finish_nova_changes_them(nova: NovaOnDisk, ours: OurDatabases) -> None:
    flavors.delete(ours.api, FLAVOR)
    assert handed_back(nova, ours).things == {}


def test_what_did_not_change_is_not_written(nova: NovaOnDisk, ours: OurDatabases) -> None:
    adoptions.note_finished(ours.api)
    before = nova.content()
    assert handed_back(nova, ours).is_unchanged
    assert nova.content() == before


def _made(ours: OurDatabases) -> None:
    made = flavors.create(ours.api, Flavor("new", "new", 1, 128, 1, extra_specs={"a": "b"}, is_public=False))
    flavors.add_project(ours.api, made, PROJECT)
    keypairs.create(ours.api, KeyPair("second", USER, "ssh-rsa x", "aa:bb"))


def _changed(ours: OurDatabases) -> None:
    flavors.update(ours.api, FLAVOR, description="changed", extra_specs={"only": "this"})
    quotas.set_limits(ours.api, PROJECT, {"cores": 5})
    quotas.set_limits(ours.api, quotas.DEFAULT_CLASS, {"ram": 8})


def _deleted(ours: OurDatabases) -> None:
    flavors.delete(ours.api, FLAVOR)
    keypairs.delete(ours.api, USER, ROWS["api"]["key_pairs"][0]["name"])
    groups.delete(ours.api, ROWS["api"]["instance_groups"][0]["uuid"])


@pytest.mark.parametrize("change", [_made, _changed, _deleted])
def test_an_import_of_what_was_handed_back_is_what_was_here(
    nova: NovaOnDisk, ours: OurDatabases, tmp_path: Path, change: Callable[[OurDatabases], None]
) -> None:
    adoptions.note_finished(ours.api)
    change(ours)
    assert handed_back(nova, ours).things
    assert handed_back(nova, ours).is_unchanged
    (tmp_path / "again").mkdir()
    with our_databases(tmp_path / "again") as again:
        import_from(nova, again)
        reads: list[Callable[[Database], Any]] = [
            flavors.list_all,
            aggregates.list_all,
            lambda api: groups.list_for(api, None),
            lambda api: keypairs.list_for(api, USER),
            lambda api: [
                quotas.limits(api, PROJECT),
                quotas.limits(api, PROJECT, "u"),
                quotas.limits(api, "class:default"),
            ],
        ]
        for read in reads:
            assert _seconds(read(again.api)) == _seconds(read(ours.api))


def _seconds(found: Any) -> str:
    """Nova's databases keep no parts of seconds."""
    for each in found:
        if getattr(each, "created_at", None) is not None:
            each.created_at = each.created_at.replace(microsecond=0)
    return repr(found)

"""What Placement's names stand for is remembered until Placement changes one."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from placement import attribute_cache
from placement.objects import project

from causeway.embedded.placement import names


class Rows:
    """A request's context whose database has these traits, by id."""

    def __init__(self, **traits: int) -> None:
        self.traits, self.reads = traits, 0
        self.during: Any = lambda: None

    def cache(self) -> Any:
        return attribute_cache.TraitCache(self)


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rows]:

    def refresh(cache: Any, ctx: Rows) -> None:
        ctx.reads += 1
        found = dict(ctx.traits)
        ctx.during()
        cache._id_cache = found
        cache._str_cache = {number: name for name, number in found.items()}
        cache._all_cache = {name: SimpleNamespace(id=number, name=name) for name, number in found.items()}

    monkeypatch.setattr(attribute_cache.TraitCache, "_refresh_from_db", refresh)
    undo = names.remember()
    yield Rows(CUSTOM_A=1)
    undo()


def test_placement_has_all_that_is_replaced() -> None:
    """A new version that calls it differently costs more: `names` must be adapted then."""
    for name in names.CACHES:
        cache = getattr(attribute_cache, name)(None)
        assert {"_ctx", *names.CONTENT} == set(vars(cache))
        assert callable(cache._refresh_from_db) and callable(cache.clear)
    assert all(callable(getattr(module, name)) for module, name in names.READERS)


def test_one_request_reads_for_all(rows: Rows) -> None:
    assert [rows.cache().id_from_string("CUSTOM_A") for _request in range(3)] == [1, 1, 1]
    assert rows.cache().string_from_id(1) == "CUSTOM_A"
    assert rows.reads == 1


def test_after_a_change_they_are_read_again(rows: Rows) -> None:
    rows.cache().get_all()
    before = rows.cache()
    rows.traits = {"CUSTOM_B": 2}
    rows.cache().clear()
    assert [trait.name for trait in rows.cache().get_all()] == ["CUSTOM_B"]
    # A request that had begun sees what it saw, as it always did.
    assert [trait.name for trait in before.get_all()] == ["CUSTOM_A"]


def test_what_was_read_before_a_change_is_not_remembered_after_it(rows: Rows) -> None:
    late = rows.cache()
    rows.during = rows.cache().clear
    assert late.id_from_string("CUSTOM_A") == 1
    rows.during = lambda: None
    rows.traits = {"CUSTOM_B": 2}
    assert [trait.name for trait in rows.cache().get_all()] == ["CUSTOM_B"]


def test_a_request_that_began_before_a_change_shares_nothing(rows: Rows) -> None:
    """Its transaction may be older than the change."""
    early = rows.cache()
    rows.cache().clear()
    assert early.id_from_string("CUSTOM_A") == 1
    rows.traits = {"CUSTOM_B": 2}
    assert [trait.name for trait in rows.cache().get_all()] == ["CUSTOM_B"]


def test_a_project_is_read_once_and_not_if_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    present: dict[str, dict[str, Any]] = {}
    reads = []

    def read(_ctx: Any, external_id: str) -> dict[str, Any]:
        reads.append(external_id)
        return present[external_id]

    monkeypatch.setattr(project, "_get_project_by_external_id", read)
    undo = names.remember()
    with pytest.raises(KeyError):
        project.Project.get_by_external_id(None, "p")
    present["p"] = {"id": 7, "external_id": "p", "updated_at": None, "created_at": None}
    found = [project.Project.get_by_external_id(number, "p") for number in range(2)]
    assert [(one.id, one._context) for one in found] == [(7, 0), (7, 1)]
    assert reads == ["p", "p"]
    undo()
    assert project._get_project_by_external_id is read

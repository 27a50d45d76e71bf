"""Aliases that Placement's statements share are made once, and mean what they meant."""

from __future__ import annotations

import sqlalchemy as sa
from placement.db.sqlalchemy import models
from placement.objects import consumer, resource_provider

from causeway.embedded.placement import aliases

PROVIDERS = models.ResourceProvider.__table__


def test_an_alias_with_a_name_is_made_once_and_one_without_each_time() -> None:
    undo = aliases.make_once()
    try:
        made = resource_provider.sa.alias(PROVIDERS, name="rp")
        assert consumer.sa.alias(PROVIDERS, name="rp") is made
        assert resource_provider.sa.alias(PROVIDERS, name="parent") is not made
        assert resource_provider.sa.alias(PROVIDERS) is not resource_provider.sa.alias(PROVIDERS)
        derived = sa.select(PROVIDERS.c.id).subquery()
        assert resource_provider.sa.alias(derived, name="a") is not resource_provider.sa.alias(derived, name="a")
        root = resource_provider.sa.alias(PROVIDERS, name="root")
        joined = str(sa.select(made.c.id).select_from(sa.join(made, root, made.c.root_provider_id == root.c.id)))
    finally:
        undo()
    one, other = sa.alias(PROVIDERS, name="rp"), sa.alias(PROVIDERS, name="root")
    assert joined == str(sa.select(one.c.id).select_from(sa.join(one, other, one.c.root_provider_id == other.c.id)))
    assert resource_provider.sa is consumer.sa is sa


def test_no_more_than_so_many_are_kept() -> None:
    known = aliases._Aliases()
    for number in range(aliases.MOST + 5):
        known.alias(PROVIDERS, name=f"rp{number}")
    assert len(known._known) == aliases.MOST

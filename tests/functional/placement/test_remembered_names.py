"""The real Placement, whose names are remembered in this process, knows of every change at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from placement import db_api
from sqlalchemy import event

from causeway import errors
from causeway.clients.placement import PlacementClient
from causeway.clients.placement.types import CandidatesRequest, RequestGroup
from causeway.embedded.placement.local import LocalPlacement

from .conftest import Hosts, new_uuid

SMALL = {"VCPU": 1, "MEMORY_MB": 64}


@contextmanager
def reads_of(*tables: str) -> Iterator[Counter[str]]:
    """Counts statements that read nothing but one of these tables."""
    engine, found = db_api.placement_context_manager.writer.get_engine(), Counter[str]()

    def count(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        words = statement.split()
        if words[0] == "SELECT" and words[words.index("FROM") + 1] in tables:
            found[words[words.index("FROM") + 1]] += 1

    event.listen(engine, "before_cursor_execute", count)
    yield found
    event.remove(engine, "before_cursor_execute", count)


def with_trait(name: str) -> CandidatesRequest:
    return CandidatesRequest([RequestGroup(resources=SMALL, required={name})])


def test_requests_do_not_read_names_again(client: PlacementClient, make_host: Hosts) -> None:
    host, project, user = make_host(), new_uuid(), new_uuid()
    client.set_traits(host, {"CUSTOM_KNOWN"})
    client.allocation_candidates(with_trait("CUSTOM_KNOWN"))
    # The first makes the project and the user.
    for _claim in range(2):
        client.claim(new_uuid(), {host: SMALL}, project, user)
    with reads_of("traits", "resource_classes", "projects", "users") as found:
        assert client.allocation_candidates(with_trait("CUSTOM_KNOWN")).requests
        client.claim(new_uuid(), {host: SMALL}, project, user)
    assert not found


def test_a_trait_is_known_when_it_was_made_and_unknown_when_it_was_deleted(
    placement: LocalPlacement, client: PlacementClient, make_host: Hosts
) -> None:
    host = make_host()
    with pytest.raises(errors.ServiceRefused):
        client.allocation_candidates(with_trait("CUSTOM_LATE"))
    placement.client().set_traits(host, {"CUSTOM_LATE"})
    assert client.allocation_candidates(with_trait("CUSTOM_LATE")).requests
    assert "CUSTOM_LATE" in client._http.call("GET", "/traits")["traits"]
    client.set_traits(host, set())
    client._http.call("DELETE", "/traits/CUSTOM_LATE")
    with pytest.raises(errors.ServiceRefused):
        client.allocation_candidates(with_trait("CUSTOM_LATE"))
    assert "CUSTOM_LATE" not in client._http.call("GET", "/traits")["traits"]


def test_a_resource_class_too(client: PlacementClient) -> None:
    def classes() -> set[str]:
        answer = client._http.call("GET", "/resource_classes")
        return {one["name"] for one in answer["resource_classes"]}

    assert "CUSTOM_LATE" not in classes()
    client._http.call("PUT", "/resource_classes/CUSTOM_LATE")
    assert "CUSTOM_LATE" in classes()
    client._http.call("DELETE", "/resource_classes/CUSTOM_LATE")
    assert "CUSTOM_LATE" not in classes()
    with pytest.raises(errors.ServiceRefused):
        client.allocation_candidates(CandidatesRequest([RequestGroup(resources={"CUSTOM_LATE": 1})]))

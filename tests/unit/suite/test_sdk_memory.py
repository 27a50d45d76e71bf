"""What tests let the SDK remember is what it would work out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openstack import fields
from openstack.block_storage.v3.volume import Volume
from openstack.compute.v2.server import Server
from openstack.image.v2.image import Image
from openstack.network.v2.port import Port
from openstack.resource import Resource

from tests.functional.servers import sdk_memory

RESOURCES: list[type[Resource]] = [Server, Port, Image, Volume]
COMPONENTS: list[type[fields._BaseComponent]] = [fields.Body, fields.Header, fields.URI, fields.Computed]


@pytest.fixture(autouse=True)
def remembering() -> None:
    sdk_memory.remember()


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize("components", [*COMPONENTS, (fields.Body, fields.Computed)])
def test_the_same_attributes_are_found_in_the_same_order(resource: type[Resource], components: Any) -> None:
    assert list(resource._attributes_iterator(components)) == list(sdk_memory._look(resource, components))
    assert list(resource._attributes_iterator()) == list(sdk_memory._look(resource))


@pytest.mark.parametrize("resource", RESOURCES)
@pytest.mark.parametrize("component", COMPONENTS)
def test_the_same_parts_of_an_answer_are_taken(
    resource: type[Resource], component: type[fields._BaseComponent]
) -> None:
    mapping = sdk_memory._map(resource, component)
    assert dict(resource._get_mapping(component)) == dict(mapping)
    known = [*mapping, *mapping.values(), *(name.upper() for name in mapping), "unknown", "Name", ""]

    @given(st.dictionaries(st.sampled_from(sorted(set(known))), st.integers()))
    def check(answer: dict[str, int]) -> None:
        expected, given_away = dict(answer), dict(answer)
        taken = sdk_memory._consume(resource(), mapping, expected)
        assert resource()._consume_attrs(resource._get_mapping(component), given_away) == taken
        assert given_away == expected
        # A mapping that nobody remembers.
        assert resource()._consume_attrs(dict(mapping), dict(answer)) == sdk_memory._consume(
            resource(), dict(mapping), dict(answer)
        )

    check()


def test_services_have_the_same_types() -> None:
    types = sdk_memory.ServiceTypes()
    for name in ("compute", "volume", "block-storage", "volumev3", "network", "nonsense"):
        assert types.get_all_types(name) == sdk_memory._all_types(sdk_memory.ServiceTypes(), name)
        types.get_all_types(name).append("changed")
        assert "changed" not in types.get_all_types(name)


def test_an_answer_is_read_with_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk_memory, "_look", lambda *_: pytest.fail("it looks again"))
    monkeypatch.setattr(sdk_memory, "_found", {})
    monkeypatch.setattr(sdk_memory, "_mappings", {})
    with pytest.raises(pytest.fail.Exception, match="it looks again"):
        Server.existing(id="1", name="a")

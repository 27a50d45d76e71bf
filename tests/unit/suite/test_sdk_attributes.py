"""What tests let the SDK remember is what it would find."""

from __future__ import annotations

from typing import Any

import pytest
from openstack import fields
from openstack.compute.v2.server import Server
from openstack.network.v2.port import Port
from openstack.resource import Resource

from tests.functional.servers import sdk_attributes


@pytest.mark.parametrize("resource", [Server, Port])
@pytest.mark.parametrize("components", [fields.Body, fields.Header, (fields.Body, fields.Computed)])
def test_the_same_attributes_are_found_in_the_same_order(resource: type[Resource], components: Any) -> None:
    sdk_attributes.remember_attributes()
    assert list(resource._attributes_iterator(components)) == list(sdk_attributes._look(resource, components))
    assert list(resource._attributes_iterator()) == list(sdk_attributes._look(resource))


def test_an_answer_is_read_with_what_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    sdk_attributes.remember_attributes()
    monkeypatch.setattr(sdk_attributes, "_look", lambda *_: pytest.fail("it looks again"))
    monkeypatch.setattr(sdk_attributes, "_found", {})
    with pytest.raises(pytest.fail.Exception, match="it looks again"):
        Server.existing(id="1", name="a")

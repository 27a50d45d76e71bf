"""The names of guests in libvirt, where a name belongs to one guest only."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4
from xml.etree import ElementTree as ET

import pytest

from causeway.errors import ClaimRefused
from causeway.model.flavor import Flavor
from causeway.model.instance import Instance
from causeway.virt.live_guest import LiveSource

if TYPE_CHECKING:
    from tests.unit.virt.libvirt_hypervisor import TestHypervisor

NOVAS = "instance-0000002a"


def server(guest_name: str | None = None, uuid: str = "11111111-1111-1111-1111-111111111111") -> Instance:
    return Instance(uuid, "project", "user", "a server", Flavor("1", "small", 1, 1, 1), guest_name=guest_name)


def name_of(hypervisor: TestHypervisor, instance: Instance) -> str:
    from causeway.virt.libvirt.driver import LibvirtDriver

    driver: Any = object.__new__(LibvirtDriver)
    driver._connection, driver._name_template = hypervisor, "instance-%(uuid)s"
    name: str = driver._name_of(instance)
    return name


def define(hypervisor: TestHypervisor, name: str, uuid: str | None = None) -> str:
    """A guest that is off. Returns its uuid."""
    domain = ET.Element("domain", type="test")
    uuid = uuid or str(uuid4())
    for tag, text in (("name", name), ("uuid", uuid), ("memory", "1024")):
        ET.SubElement(domain, tag).text = text
    ET.SubElement(ET.SubElement(domain, "os"), "type").text = "hvm"
    hypervisor.hypervisor.defineXML(ET.tostring(domain, encoding="unicode"))
    return uuid


def test_a_guest_has_its_recorded_name_or_else_the_computed_one(hypervisor: TestHypervisor) -> None:
    assert name_of(hypervisor, server(NOVAS)) == NOVAS
    assert name_of(hypervisor, server()) == f"instance-{server().uuid}"


def test_a_guest_that_exists_keeps_its_name_whatever_is_recorded(hypervisor: TestHypervisor) -> None:
    define(hypervisor, "instance-00000001", server().uuid)
    assert name_of(hypervisor, server()) == name_of(hypervisor, server(NOVAS)) == "instance-00000001"


def test_a_guest_whose_recorded_name_another_guest_has_gets_the_computed_one(
    hypervisor: TestHypervisor, caplog: pytest.LogCaptureFixture
) -> None:
    other = define(hypervisor, NOVAS)
    with caplog.at_level(logging.WARNING):
        assert name_of(hypervisor, server(NOVAS)) == f"instance-{server().uuid}"
    assert f"Another guest has the name {NOVAS}" in caplog.text
    assert hypervisor.hypervisor.lookupByName(NOVAS).UUIDString() == other


def test_a_guest_that_keeps_its_name_is_refused_if_another_guest_has_it(hypervisor: TestHypervisor) -> None:
    from causeway.virt.libvirt.live import live_source

    said = LiveSource("QEMU", 0, details={"uuid": server().uuid, "name": NOVAS})
    check = partial(live_source.check_name, hypervisor)
    check(said)
    holder = define(hypervisor, NOVAS)
    with pytest.raises(ClaimRefused, match="Another guest of the host has the name"):
        check(said)
    # Its own guest here, a source that says no name, and one that gives its guest the name that it has here.
    check(replace(said, details={"uuid": holder, "name": NOVAS}))
    check(replace(said, details={}))
    check(replace(said, details={**said.details, "renames": True}))

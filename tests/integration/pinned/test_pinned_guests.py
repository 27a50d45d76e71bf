"""Pinned CPUs and NUMA cells with real guests: what libvirt says of them, before a move across cells, after it and back."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from causeway.embedded.cloud import EmbeddedCloud
from causeway.model.flavor import Flavor
from causeway.store.api import flavors
from causeway.virt.lab.hosts import Lab, missing
from tests.functional.servers import moves_cloud, patience
from tests.functional.servers.moves_cloud import Cloud

REASON = missing() or (None if (os.cpu_count() or 1) > 1 else "two CPUs are needed: one to pin, one to share")


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setattr(patience, "PATIENCE", 120.0)
    embedded = EmbeddedCloud(
        tmp_path / "cloud",
        port=0,
        driver="libvirt",
        overrides={"compute": {"cpu_dedicated_set": "1", "cpu_shared_set": "0"}},
    )
    embedded.start()
    try:
        yield Cloud(embedded)
    finally:
        embedded.stop()
        Lab(embedded.state.lab).stop(keep_guests=False)


def domain(cloud: Cloud, server: Any, host: str) -> ET.Element:
    connection = cloud.parts.computes[host].host.driver._connection
    return ET.fromstring(
        connection.call("describe a guest", lambda libvirt: libvirt.lookupByUUIDString(server.id).XMLDesc(0))
    )


def pins(found: ET.Element) -> dict[str | None, str | None]:
    return {pin.get("vcpu"): pin.get("cpuset") for pin in found.iterfind("cputune/vcpupin")}


def claimed(cloud: Cloud) -> dict[str, int]:
    return {name: len(service.host.claims.listed()) for name, service in cloud.parts.computes.items()}


@pytest.mark.libvirt
@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.timeout(600)
def test_a_pinned_guest_goes_to_another_cell_and_back(cloud: Cloud) -> None:
    for gen in ("1", "2"):
        specs = {"aggregate_instance_extra_specs:gen": gen, "hw:cpu_policy": "dedicated"}
        name = f"pinned.{gen}"
        flavors.create(cloud.parts.api_database, Flavor(name, name, 1, 128, 1, extra_specs=specs))

    server = cloud.boot(flavor="pinned.1")
    assert pins(domain(cloud, server, "cell1-host1")) == {"0": "1"}
    cloud.resized(server, "pinned.2")
    moved = domain(cloud, server, "cell2-host1")
    assert pins(moved) == {"0": "1"}
    assert moved.find("cpu/numa/cell[@id='0']") is not None
    assert claimed(cloud) == {"cell1-host1": 1, "cell2-host1": 1}

    # The source keeps its one dedicated CPU for a revert.
    other = cloud.member.compute.create_server(
        name="other", flavor_id="pinned.1", image_id=cloud.image_id, networks="none"
    )
    refused = moves_cloud.until(lambda: cloud.show(other), lambda seen: seen.fault is not None, "no valid host")
    assert "No valid host was found" in refused.fault["message"]

    cloud.reverted(server)
    assert pins(domain(cloud, server, "cell1-host1")) == {"0": "1"}
    assert claimed(cloud) == {"cell1-host1": 1, "cell2-host1": 0}
    plain = cloud.boot("plain", "gen1.small")
    vcpu = domain(cloud, plain, "cell1-host1").find("vcpu")
    assert vcpu is not None and vcpu.get("cpuset") == "0"
    cloud.clean()
    assert claimed(cloud) == {"cell1-host1": 0, "cell2-host1": 0}

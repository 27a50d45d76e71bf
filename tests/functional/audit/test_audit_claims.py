"""The audit of claims: what hosts keep for servers is what the servers' records say."""

from __future__ import annotations

import dataclasses

import pytest

from tests.functional.servers import pinned_cloud
from tests.functional.servers.audited_cloud import AuditedCloud
from tests.functional.servers.pinned_cloud import NOTHING, held, pinned

CLOUD = pinned_cloud.CLOUD


def test_pinned_servers_of_a_quiet_cloud_are_clean(cloud: AuditedCloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.nic", gen="1", pci_passthrough__alias="nic:1"))
    cloud.resized(server, pinned(cloud, "pinned.4.2", 4, gen="2"))
    assert cloud.audit().is_clean
    cloud.reverted(server)
    assert cloud.audit().is_clean


def test_a_claim_that_nobody_needs_is_ended(cloud: AuditedCloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    asking = dataclasses.replace(cloud.record(server, "cell1"), pci_devices=[])
    other = cloud.other_host(server)
    cloud.parts.computes[other].host.claims.claim(asking, "11111111-1111-1111-1111-111111111111")
    assert cloud.only("claim.orphaned").resource == f"claim on {other}"
    cloud.fixes("claim.orphaned")
    assert held(cloud, other) == NOTHING


def test_the_claim_of_a_deleted_server_is_ended(cloud: AuditedCloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    host = cloud.show(server).compute_host
    record = cloud.record(server, "cell1")
    cloud.clean()
    cloud.parts.computes[host].host.claims.claim(record, None)
    cloud.fixes("claim.orphaned")
    assert held(cloud, host) == NOTHING


@pytest.mark.parametrize("end", ["target", "source"])
def test_a_claim_that_was_lost_is_made_again(cloud: AuditedCloud, end: str) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    source = cloud.show(server).compute_host
    target = cloud.resized(server, pinned(cloud, "pinned.4.2", 4, gen="2")).compute_host
    host = target if end == "target" else source
    before = held(cloud, host)
    cloud.parts.computes[host].host.claims.release_all(server.id)
    cloud.fixes("claim.missing")
    assert held(cloud, host) == before
    cloud.confirmed(server)
    assert held(cloud, source) == NOTHING and cloud.audit().is_clean


def test_a_lost_claim_is_not_made_again_over_somebody_else(cloud: AuditedCloud) -> None:
    server = cloud.boot(flavor=pinned(cloud, "pinned.2", gen="1"))
    host = cloud.show(server).compute_host
    claims = cloud.parts.computes[host].host.claims
    claims.release_all(server.id)
    other = cloud.boot("other", flavor="pinned.2")
    if cloud.show(other).compute_host != host:
        cloud.admin.compute.migrate_server(other.id, host=host)
        cloud.wait(other, "VERIFY_RESIZE")
        cloud.confirmed(other)
    cloud.only_reports("claim.missing")

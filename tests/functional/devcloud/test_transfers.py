"""Volumes that go to another project, by the SDK, and what Block Storage and Image answer about what nobody makes here."""

from collections.abc import Iterator
from typing import Any

import openstack
import pytest


@pytest.fixture
def volume(demo: Any) -> Iterator[Any]:
    storage = demo.block_storage
    yield storage.wait_for_status(storage.create_volume(name="offered", size=1), interval=0.05, wait=20)


def test_a_volume_goes_with_its_snapshots_to_whoever_knows_the_key(demo: Any, other: Any, volume: Any) -> None:
    snapshot = demo.block_storage.create_snapshot(volume_id=volume.id)
    demo.block_storage.wait_for_status(snapshot, interval=0.05, wait=20)
    offer = demo.block_storage.create_transfer(volume_id=volume.id, name="take it")
    assert demo.block_storage.get_volume(volume.id).status == "awaiting-transfer"
    assert [each.id for each in demo.block_storage.transfers()] == [offer.id]
    assert demo.block_storage.get_transfer(offer.id).auth_key is None
    assert list(other.block_storage.transfers()) == []
    with pytest.raises(openstack.exceptions.BadRequestException, match="auth key"):
        other.block_storage.accept_transfer(offer.id, "not the key")
    accepted = other.block_storage.accept_transfer(offer.id, offer.auth_key)
    assert (accepted.id, accepted.volume_id) == (offer.id, volume.id)
    assert other.block_storage.get_volume(volume.id).status == "available"
    assert [each.id for each in other.block_storage.snapshots()] == [snapshot.id]
    assert demo.block_storage.find_volume(volume.id) is None
    with pytest.raises(openstack.exceptions.NotFoundException):
        other.block_storage.accept_transfer(offer.id, offer.auth_key)


def test_snapshots_may_stay_behind(demo: Any, other: Any, volume: Any) -> None:
    snapshot = demo.block_storage.create_snapshot(volume_id=volume.id)
    demo.block_storage.wait_for_status(snapshot, interval=0.05, wait=20)
    offer = demo.block_storage.create_transfer(volume_id=volume.id, no_snapshots=True)
    other.block_storage.accept_transfer(offer.id, offer.auth_key)
    assert demo.block_storage.get_snapshot(snapshot.id).status == "available"
    assert other.block_storage.find_snapshot(snapshot.id) is None


def test_an_offer_that_is_deleted_leaves_the_volume_as_it_was(demo: Any, other: Any, volume: Any) -> None:
    offer = demo.block_storage.create_transfer(volume_id=volume.id)
    with pytest.raises(openstack.exceptions.BadRequestException):
        demo.block_storage.create_transfer(volume_id=volume.id)
    with pytest.raises(openstack.exceptions.BadRequestException):
        demo.block_storage.delete_volume(volume)
    with pytest.raises(openstack.exceptions.NotFoundException):
        other.block_storage.delete_transfer(offer.id, ignore_missing=False)
    demo.block_storage.delete_transfer(offer.id, ignore_missing=False)
    assert demo.block_storage.get_volume(volume.id).status == "available"
    demo.block_storage.delete_volume(volume, ignore_missing=False)


def test_the_path_of_old_clients_offers_the_same(devcloud: Any, volume: Any) -> None:
    old = {"OpenStack-API-Version": "volume 3.0"}
    body = {"transfer": {"volume_id": volume.id, "name": None}}
    offer = devcloud.ok("POST", "/volume/v3/os-volume-transfer", body, "demo", headers=old)["transfer"]
    assert offer.keys() == {"id", "volume_id", "name", "links", "created_at", "auth_key"}
    listed = devcloud.ok("GET", "/volume/v3/os-volume-transfer/detail", user="demo", headers=old)["transfers"]
    assert [each["id"] for each in listed] == [offer["id"]]
    body = {"accept": {"auth_key": offer["auth_key"]}}
    devcloud.ok("POST", f"/volume/v3/os-volume-transfer/{offer['id']}/accept", body, "other", headers=old)


def test_a_volume_that_is_deleted_by_force_takes_its_offer_along(demo: Any, devcloud: Any, volume: Any) -> None:
    offer = demo.block_storage.create_transfer(volume_id=volume.id)
    devcloud.ok("POST", f"/volume/v3/volumes/{volume.id}/action", {"os-force_delete": {}}, "admin")
    assert demo.block_storage.find_transfer(offer.id) is None


def test_administrators_see_the_pool_of_a_volume(admin: Any, demo: Any, volume: Any) -> None:
    (pool,) = admin.block_storage.backend_pools()
    assert pool.name == admin.block_storage.get_volume(volume.id).host
    assert pool.capabilities["volume_backend_name"] == "files"
    with pytest.raises(openstack.exceptions.ForbiddenException):
        list(demo.block_storage.backend_pools())


def test_what_nobody_makes_here_is_listed_as_nothing(devcloud: Any) -> None:
    storage = devcloud.sdk("admin").block_storage
    for listed in (storage.groups, storage.group_types, storage.group_snapshots, storage.qos_specs, storage.backups):
        assert list(listed()) == []
    assert list(storage.messages()) == []
    with pytest.raises(openstack.exceptions.NotFoundException):
        storage.get_group("none")
    default = devcloud.ok("GET", "/volume/v3/types/default", user="demo")["volume_type"]
    assert storage.get_type_encryption(default["id"]).cipher is None
    assert storage.get_quota_class_set("default").volumes == 1000


def test_the_catalog_of_metadata_has_a_namespace_and_schemas(demo: Any) -> None:
    (listed,) = demo.image.metadef_namespaces()
    assert "OS::Nova::Flavor" in {one.name for one in demo.image.metadef_resource_types()}
    shown = demo.image.get_metadef_namespace(listed.namespace)
    assert "OS::Nova::Flavor" in {one["name"] for one in shown.resource_type_associations}
    # Horizon's dialog for servers asks for both, and can't do with none.
    targets = {
        one.get("properties_target") for one in shown.resource_type_associations if one["name"] == "OS::Nova::Server"
    }
    assert targets == {"metadata", "scheduler_hints"}
    of_a_type = "/metadefs/namespaces?resource_types="
    assert len(demo.image.get(f"{of_a_type}OS::Nova::Flavor").json()["namespaces"]) == 1
    assert demo.image.get(f"{of_a_type}OS::Trove::Instance").json()["namespaces"] == []
    assert "resource_type_associations" in demo.image.get_metadef_namespace_schema().properties
    assert "namespaces" in demo.image.get_metadef_namespaces_schema().properties
    with pytest.raises(openstack.exceptions.NotFoundException):
        demo.image.get_metadef_namespace("OS::Compute::Libvirt")

"""The suite on a cloud that runs elsewhere: the cloud as a fixture, and leaving it as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import openstack
import pytest

from tests.functional.servers.deployed_cloud import DeployedCloud
from tests.functional.servers.moves_cloud import Cloud, until


@pytest.fixture(scope="session")
def deployed(request: pytest.FixtureRequest) -> Iterator[DeployedCloud | None]:
    """The cloud of ``--cloud``; None without it."""
    file = request.config.getoption("--cloud", default=None)
    if file is None:
        yield None
        return
    cloud = DeployedCloud(Path(file))
    yield cloud
    cloud.close()


@contextmanager
def sweep(deployed: DeployedCloud) -> Iterator[None]:
    """What is made meanwhile, and not deleted, is deleted: each module finds the cloud as the first one did."""
    cloud, placement = Cloud(deployed), deployed.around.placement
    providers = {each.uuid for each in placement.list_providers()}
    found = {name: set(ids()) for name, (ids, _delete) in _resources(cloud).items()}
    zones = {each.id: each.availability_zone for each in cloud.admin.compute.aggregates()}
    yield
    cloud.heal()
    cloud.settle()
    cloud.clean()
    for name, (ids, delete) in _resources(cloud).items():
        for identity in [each for each in ids() if each not in found[name]]:
            if name == "volumes":
                # Those whose snapshots are being deleted can't be yet.
                until(lambda: _snapshots(cloud) - found["snapshots"], lambda left: not left, "snapshots to go")
            # What is in use still, or goes with something else, or went already.
            with suppress(openstack.exceptions.HttpException):
                delete(identity)
    for provider in [each for each in placement.list_providers() if each.uuid not in providers][::-1]:
        placement.delete_provider(provider.uuid)
    for aggregate in cloud.admin.compute.aggregates():
        if aggregate.availability_zone != zones[aggregate.id]:
            back = {"availability_zone": zones[aggregate.id]}
            cloud.admin.compute.set_aggregate_metadata(aggregate, back)
    until(lambda: set(_volumes(cloud)) - found["volumes"], lambda left: not left, "volumes to go")


def _volumes(cloud: Cloud) -> list[str]:
    return [each.id for each in cloud.admin.block_storage.volumes(details=False, all_projects=True)]


def _snapshots(cloud: Cloud) -> set[str]:
    return {each.id for each in cloud.admin.block_storage.snapshots(details=False, all_projects=True)}


def _resources(cloud: Cloud) -> dict[str, tuple[Callable[[], list[str]], Callable[[str], Any]]]:
    """What tests make, in the order in which it can be deleted: how to list it, and how to delete one."""
    compute, network, images, volumes = (
        cloud.admin.compute,
        cloud.admin.network,
        cloud.admin.image,
        cloud.admin.block_storage,
    )

    def delete_aggregate(identity: str) -> None:
        for host in compute.get_aggregate(int(identity)).hosts or ():
            compute.remove_host_from_aggregate(int(identity), host)
        compute.delete_aggregate(int(identity))

    def ids(items: Callable[..., Any], **query: Any) -> Callable[[], list[str]]:
        return lambda: [str(each.id) for each in items(**query)]

    return {
        "flavors": (ids(compute.flavors, is_public=None), compute.delete_flavor),
        "aggregates": (ids(compute.aggregates), delete_aggregate),
        "keypairs": (
            lambda: [each.name for each in cloud.member.compute.keypairs()],
            cloud.member.compute.delete_keypair,
        ),
        "groups": (ids(cloud.member.compute.server_groups), cloud.member.compute.delete_server_group),
        "images": (ids(images.images), images.delete_image),
        "snapshots": (ids(volumes.snapshots, details=False, all_projects=True), volumes.delete_snapshot),
        "volumes": (lambda: _volumes(cloud), volumes.delete_volume),
        "types": (ids(volumes.types), volumes.delete_type),
        "ports": (lambda: [each.id for each in network.ports() if not each.device_owner], network.delete_port),
        "subnets": (ids(network.subnets), network.delete_subnet),
        "networks": (ids(network.networks), network.delete_network),
    }

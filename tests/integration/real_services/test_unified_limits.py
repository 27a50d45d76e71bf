"""Unified limits of the real Keystone: what oslo.limit reads there, with a service user that only reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from causeway import errors
from causeway.api.quotas import unified_limits
from causeway.clients.limits import Limits, LimitsClient
from causeway.conf import new_config
from tests.integration.real_services.configuration import PASSWORD, REGION
from tests.integration.real_services.services import RealServices, keystone_alone

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def keystone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServices]:
    with keystone_alone(tmp_path_factory.mktemp("keystone")) as services:
        yield services


@pytest.fixture(scope="module")
def limited(keystone: RealServices) -> dict[str, str]:
    """Ids of two projects and of the endpoint that limits are registered for."""
    with keystone.connection(project="admin") as cloud:
        identity = cloud.identity
        compute = identity.create_service(name="causeway", type="compute")
        endpoints = [
            identity.create_endpoint(service_id=compute.id, interface=kind, url="http://127.0.0.1/", region_id=REGION)
            for kind in ("public", "internal")
        ]
        reader = identity.create_user(name="causeway", password=PASSWORD, domain_id="default")
        identity.put(f"/system/users/{reader.id}/roles/{identity.find_role('reader').id}").raise_for_status()
        projects = [identity.create_project(name=name, domain_id="default").id for name in ("own", "other")]
    admin = keystone.connection_to_system()
    place = {"service_id": compute.id, "region_id": REGION}
    for name, limit in {"servers": 3, "class:VCPU": 8, "class:DISK_GB": 0, "server_groups": -1}.items():
        admin.identity.create_registered_limit(**place, resource_name=name, default_limit=limit)
    admin.identity.create_limit(**place, project_id=projects[0], resource_name="class:VCPU", resource_limit=2)
    admin.close()
    return {"own": projects[0], "other": projects[1], "endpoint": endpoints[0].id}


def client(keystone: RealServices, **options: Any) -> LimitsClient:
    return LimitsClient(
        new_config(
            oslo_limit={
                "auth_type": "password",
                "auth_url": keystone.addresses.auth_url,
                "username": "causeway",
                "password": PASSWORD,
                "user_domain_id": "default",
                "system_scope": "all",
                **options,
            }
        )
    )


REGISTERED = {"servers": 3, "class:VCPU": 8, "class:DISK_GB": 0, "server_groups": -1}


def test_limits_are_read_by_the_endpoint(keystone: RealServices, limited: dict[str, str]) -> None:
    for options in ({"endpoint_id": limited["endpoint"]}, {"endpoint_region_name": REGION}, {}):
        found = client(keystone, **options)
        assert found.of_project(None) == Limits(REGISTERED, {})
        assert found.of_project(limited["own"]) == Limits(REGISTERED, {"class:VCPU": 2})
        assert found.of_project(limited["other"]) == Limits(REGISTERED, {})


def test_limits_are_read_from_keystone(keystone: RealServices, limited: dict[str, str]) -> None:
    conf = new_config()
    limits = client(keystone).of_project(limited["own"])
    names = ("servers", "class:VCPU", "class:DISK_GB", "class:MEMORY_MB", "server_groups")
    assert [unified_limits.limit_of(conf, limits, name) for name in names] == [3, 2, 0, -1, -1]


def test_a_changed_limit_is_read_at_once(keystone: RealServices, limited: dict[str, str]) -> None:
    reading = client(keystone)
    with keystone.connection_to_system() as admin:
        (limit,) = admin.identity.limits(project_id=limited["own"])
        for amount in (5, 2):
            admin.identity.update_limit(limit, resource_limit=amount)
            assert reading.of_project(limited["own"]).own == {"class:VCPU": amount}


def test_what_is_wrong_is_said(keystone: RealServices, limited: dict[str, str]) -> None:
    for options, why in (
        ({"endpoint_id": limited["own"]}, "Can't find endpoint"),
        ({"password": "wrong"}, "HTTP 401"),
        ({"endpoint_service_type": "baking"}, "Service not found"),
    ):
        with pytest.raises(errors.ServiceFailed) as failed:
            client(keystone, **options).of_project(limited["own"])
        assert why in failed.value.details and PASSWORD not in failed.value.details

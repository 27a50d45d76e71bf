"""The account with which hosts call services: whoever owns a host has it."""

from __future__ import annotations

from typing import Any

import openstack
import pytest
from openstack import exceptions

from tests.functional.servers.moves_cloud import Cloud


@pytest.fixture
def host(cloud: Cloud) -> Any:
    """Who has what is in a host's configuration."""
    accounts = cloud.embedded._accounts_of_hosts().glance
    return openstack.connect(
        auth={
            "auth_url": accounts.auth_url,
            "username": accounts.username,
            "password": accounts.password,
            "project_name": accounts.project_name,
            "user_domain_id": accounts.user_domain_id,
            "project_domain_id": accounts.project_domain_id,
        },
        region_name="RegionOne",
        load_yaml_config=False,
        load_envvars=False,
    )


def test_the_account_of_hosts_is_no_administrator(host: Any) -> None:
    assert host.session.auth.get_access(host.session).role_names == ["service"]
    for refused in (
        lambda: list(host.identity.users()),
        lambda: list(host.identity.projects()),
        lambda: host.compute.create_flavor(name="theirs", ram=1, vcpus=1, disk=1),
        lambda: list(host.compute.hypervisors()),
    ):
        with pytest.raises(exceptions.ForbiddenException):
            refused()


def test_hosts_use_their_account_and_roles_their_own(cloud: Cloud) -> None:
    ours, of_hosts = cloud.embedded.around.sessions, cloud.embedded.around_of_hosts.sessions
    cloud.boot()
    for compute in cloud.embedded.computes.values():
        assert {compute.host.images._api.sessions, compute.host.volumes._api.sessions} == {of_hosts}
    for sessions, user in ((ours, "causeway"), (of_hosts, "causeway-compute")):
        for group in ("glance", "cinder", "neutron", "service_user"):
            credentials = sessions.credentials(group)
            assert credentials is not None
            assert credentials.auth.get_access(credentials.session).username == user

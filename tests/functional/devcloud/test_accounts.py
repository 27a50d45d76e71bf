"""Domains, groups and the catalog, which administrators change by the SDK."""

from typing import Any

import openstack
import pytest
from keystoneauth1 import exceptions
from keystoneauth1.identity import v3
from keystoneauth1.session import Session


@pytest.fixture(scope="module")
def identity(shared: Any) -> Any:
    return shared.sdk("admin").identity


def test_users_have_no_credentials_of_other_kinds(identity: Any, shared: Any) -> None:
    assert list(identity.credentials()) == []
    assert list(shared.sdk("demo").identity.credentials()) == []


def test_a_group_has_members(identity: Any, shared: Any) -> None:
    demo = shared.sdk("demo")
    group = identity.create_group(name="operators", description="of the night")
    with pytest.raises(openstack.exceptions.ConflictException):
        identity.create_group(name="operators")
    identity.add_user_to_group(demo.current_user_id, group)
    assert identity.check_user_in_group(demo.current_user_id, group)
    assert [user.name for user in identity.group_users(group)] == ["demo"]
    assert [each.id for each in demo.identity.user_groups(demo.current_user_id)] == [group.id]
    assert identity.update_group(group, name="watch").name == "watch"
    assert [each.description for each in identity.groups(name="watch")] == ["of the night"]
    with pytest.raises(openstack.exceptions.ForbiddenException):
        list(demo.identity.groups())
    identity.remove_user_from_group(demo.current_user_id, group)
    assert not identity.check_user_in_group(demo.current_user_id, group)
    identity.add_user_to_group(demo.current_user_id, group)
    identity.delete_group(group, ignore_missing=False)
    assert list(demo.identity.user_groups(demo.current_user_id)) == []


def test_a_domain_ends_with_all_that_is_in_it(identity: Any, shared: Any) -> None:
    domain = identity.create_domain(name="heat", description="stacks")
    with pytest.raises(openstack.exceptions.ConflictException):
        identity.create_domain(name="heat")
    project = identity.create_project(name="stack", domain_id=domain.id)
    user = identity.create_user(name="stack", domain_id=domain.id, password="a-password")
    group = identity.create_group(name="stack", domain_id=domain.id)
    identity.add_user_to_group(user, group)
    identity.assign_project_role_to_user(project, user, identity.find_role("member"))
    login = {"username": "stack", "password": "a-password", "user_domain_name": "heat", "project_id": project.id}
    session = Session(v3.Password(shared.accounts.auth_url, **login))
    assert shared.cloud.tokens.check(session.get_token()) is not None
    with pytest.raises(openstack.exceptions.ForbiddenException):
        identity.delete_domain(domain)
    identity.update_domain(domain, is_enabled=False)
    assert shared.cloud.tokens.check(session.get_token()) is None
    with pytest.raises(exceptions.Unauthorized):
        Session(v3.Password(shared.accounts.auth_url, **login)).get_token()
    identity.delete_domain(domain, ignore_missing=False)
    for find in (identity.find_domain, identity.find_project, identity.find_group):
        assert find("stack" if find != identity.find_domain else "heat") is None
    assert user.id not in {each.id for each in identity.users()}


def test_an_endpoint_and_a_service_are_changed(identity: Any, shared: Any) -> None:
    service = identity.create_service(name="heat", type="orchestration")
    url = "http://127.0.0.1:8004/v1/$(project_id)s"
    endpoint = identity.create_endpoint(service_id=service.id, interface="public", region_id="RegionOne", url=url)
    changed = identity.update_endpoint(endpoint, url=url.replace("8004", "8005"))
    assert (changed.url, changed.interface) == ("http://127.0.0.1:8005/v1/$(project_id)s", "public")
    assert identity.update_service(service, name="stacks", description="of servers").name == "stacks"
    demo = shared.sdk("demo")
    assert demo.endpoint_for("orchestration") == f"http://127.0.0.1:8005/v1/{demo.current_project_id}"
    identity.update_endpoint(endpoint, is_enabled=False)
    assert shared.sdk("demo").endpoint_for("orchestration") is None
    with pytest.raises(openstack.exceptions.BadRequestException):
        identity.update_endpoint(endpoint, interface="everybody")
    with pytest.raises(openstack.exceptions.ForbiddenException):
        demo.identity.update_service(service, name="mine")
    identity.delete_service(service, ignore_missing=False)
    assert endpoint.id not in {each.id for each in identity.endpoints()}

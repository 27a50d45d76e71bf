"""Every page of Horizon's menus, as a member and as an administrator see them."""

from __future__ import annotations

import pytest

from tests.integration.clients.cloud import ADMIN, MEMBER
from tests.integration.clients.horizon_browser import Dashboard

OF_A_PROJECT = {
    "project": "Overview",
    "project/api_access": "API Access",
    "project/instances": "Instances",
    "project/images": "Images",
    "project/key_pairs": "Key Pairs",
    "project/server_groups": "Server Groups",
    "project/volumes": "Volumes",
    "project/snapshots": "Volume Snapshots",
    "project/volume_groups": "Groups",
    "project/vg_snapshots": "Group Snapshots",
    "project/network_topology": "Network Topology",
    "project/networks": "Networks",
    "project/routers": "Routers",
    "project/security_groups": "Security Groups",
    "project/floating_ips": "Floating IPs",
    "project/network_qos": "Network QoS Policies",
    "identity": "Projects",
    "identity/users": "Users",
    "identity/application_credentials": "Application Credentials",
    "settings": "User Settings",
    "settings/password": "Change Password",
}
ADMINISTRATORS = {
    **OF_A_PROJECT,
    "admin": "Usage Overview",
    "admin/hypervisors": "Hypervisors",
    "admin/aggregates": "Host Aggregates",
    "admin/instances": "Instances",
    "admin/flavors": "Flavors",
    "admin/images": "Images",
    "admin/volumes": "Volumes",
    "admin/snapshots": "Volume Snapshots",
    "admin/volume_types": "Volume Types",
    "admin/volume_groups": "Groups",
    "admin/vg_snapshots": "Group Snapshots",
    "admin/group_types": "Group Types",
    "admin/networks": "Networks",
    "admin/routers": "Routers",
    "admin/floating_ips": "Floating IPs",
    "admin/defaults": "Default Quotas",
    "admin/metadata_defs": "Metadata Definitions",
    "admin/info": "System Information",
    "identity/groups": "Groups",
    "identity/roles": "Roles",
    "identity/credentials": "User Credentials",
}
# Files of the menu, and what is in them.
FILES = {"project/api_access/openrc": "export OS_AUTH_URL=", "project/api_access/clouds.yaml": "auth_url:"}


@pytest.mark.parametrize(("path", "title"), OF_A_PROJECT.items())
def test_a_member_sees_every_page_of_the_menus(member: Dashboard, path: str, title: str) -> None:
    member.open(f"{path}/", title)


@pytest.mark.parametrize(("path", "title"), ADMINISTRATORS.items())
def test_an_administrator_sees_every_page_of_the_menus(administrator: Dashboard, path: str, title: str) -> None:
    administrator.open(f"{path}/", title)


@pytest.mark.parametrize(("path", "content"), FILES.items())
def test_a_member_gets_the_file(member: Dashboard, path: str, content: str) -> None:
    member.go("project/")
    assert content in member.fetch(path)


@pytest.mark.parametrize(("cloud", "tried"), [(MEMBER, OF_A_PROJECT), (ADMIN, ADMINISTRATORS)], ids=[MEMBER, ADMIN])
def test_the_menu_leads_to_nothing_else(request: pytest.FixtureRequest, cloud: str, tried: dict[str, str]) -> None:
    dashboard: Dashboard = request.getfixturevalue("member" if cloud == MEMBER else "administrator")
    dashboard.go("project/")
    dashboard.settle()
    assert len(dashboard.menu()) > 20
    assert dashboard.menu() - {*tried, *FILES} == set()

"""A server's life in Horizon, its page, its console, and the pages of single things that belong to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from tests.browser import shown
from tests.integration.clients.cloud import ADMIN, IMAGE, PRIVATE, connected
from tests.integration.clients.horizon_browser import Dashboard


def test_a_server_is_launched(launched: Any) -> None:
    assert launched.status == "ACTIVE"
    assert launched.flavor.name == "m1.tiny"


def test_a_server_is_resized_and_confirmed(member: Dashboard, launched: Any, compute: Any) -> None:
    member.go(f"project/instances/{launched.id}/resize")
    member.settle()
    member.choose("id_flavor", "m1.small")
    member.submit()
    compute.compute.wait_for_server(launched, status="VERIFY_RESIZE", wait=120)
    member.go("project/instances/")
    member.wait_for(f"#instances__row_{launched.id}__action_confirm").click()
    found = compute.compute.wait_for_server(launched, status="ACTIVE", wait=120)
    assert found.flavor.name == "m1.small"


def test_a_volume_is_attached(member: Dashboard, launched: Any, volume: Any, compute: Any) -> None:
    member.go(f"project/instances/{launched.id}/attach_volume/")
    member.settle()
    member.choose("id_volume", "of-horizon")
    member.submit()
    compute.block_storage.wait_for_status(volume, "in-use", wait=120)
    assert [one.id for one in compute.compute.volume_attachments(launched)] == [volume.id]


def test_a_server_s_page_shows_what_it_is(member: Dashboard, launched: Any, volume: Any) -> None:
    member.open(f"project/instances/{launched.id}/", launched.name)
    member.wait_for_text(".detail dl", launched.id, "Active", "m1.small", IMAGE, PRIVATE, volume.name)


def test_a_server_s_page_shows_its_ports(member: Dashboard, launched: Any, compute: Any) -> None:
    (port,) = compute.network.ports(device_id=launched.id)
    member.open(f"project/instances/{launched.id}/?tab=instance_details__interfaces", launched.name)
    member.wait_for_text("#interfaces", port.fixed_ips[0]["ip_address"], port.mac_address)


def test_a_server_s_page_shows_what_it_wrote(member: Dashboard, launched: Any) -> None:
    member.open(f"project/instances/{launched.id}/?tab=instance_details__log", launched.name)
    member.wait_for_text("pre.logs", "CAUSEWAY-READY")


def test_a_server_s_page_shows_to_an_administrator_what_was_done(administrator: Dashboard, launched: Any) -> None:
    administrator.open(f"admin/instances/{launched.id}/detail?tab=instance_details__audit", launched.name)
    administrator.wait_for_text("#audit", "Create", "Resize", "Confirm Resize", "attach_volume")


def test_a_server_s_console_shows_what_it_writes_and_takes_what_is_typed(
    member: Dashboard, launched: Any, compute: Any
) -> None:
    member.open(f"project/instances/{launched.id}/?tab=instance_details__console", launched.name)
    browser = member.browser
    browser.switch_to.frame(member.wait_for("iframe#console_embed"))
    try:
        member.wait_for_text("#terminalNode", "CAUSEWAY-READY")
        ActionChains(browser).click(browser.find_element(By.ID, "terminalNode")).send_keys("good morning").perform()
        member.wait_for_text("#terminalNode", "good morning")
    finally:
        browser.switch_to.default_content()
    # The terminal itself shows nothing that is typed: it came back from the guest, which has it in its log.
    shown(browser, lambda _page: "good morning" in compute.compute.get_server_console_output(launched)["output"])


OF_A_MEMBER = {
    "project/instances/{server}/update": "Edit Instance",
    "project/instances/{server}/rebuild": "Rebuild Instance",
    "project/instances/{server}/resize": "Resize Instance",
    "project/instances/{server}/attach_interface": "Attach Interface",
    "project/instances/{server}/detach_interface": "Detach Interface",
    "project/instances/{server}/detach_volume/": "Manage Volume",
    "project/instances/{server}/rescue": "Rescue Instance",
    "project/volumes/{volume}/": "of-horizon",
    "project/volumes/{volume}/?tab=volume_details__snapshots_tab": "of-horizon",
    "project/volumes/{volume}/attach/": "Manage Volume Attachments",
    "project/volumes/{volume}/extend/": "Extend Volume",
    "project/volumes/{volume}/retype/": "Change Volume Type",
    "project/volumes/{volume}/create_snapshot/": "Create Volume Snapshot",
    "project/volumes/create/": "Create Volume",
    "project/networks/{network}/detail": PRIVATE,
    "project/networks/{network}/detail?tab=network_details__subnets_tab": PRIVATE,
    "project/networks/{network}/detail?tab=network_details__ports_tab": PRIVATE,
    "project/networks/ports/{port}/detail": "{port}",
    "project/networks/create": "Create Network",
    "project/routers/create/": "Create Router",
    "project/floating_ips/allocate/": "Allocate Floating IP",
    "project/floating_ips/associate/": "Manage Floating IP Associations",
    "identity/application_credentials/create/": "Create Application Credential",
}
OF_AN_ADMINISTRATOR = {
    "admin/instances/{server}/detail": "of-horizon",
    "admin/instances/{server}/live_migrate": "Live Migrate",
    "admin/hypervisors/?tab=hypervisor_info__compute_hosts": "Hypervisors",
    "admin/hypervisors/{hypervisor}/": "Hypervisor Servers",
    "admin/aggregates/create/": "Create Host Aggregate",
    "admin/aggregates/{aggregate}/update/": "Edit Host Aggregate",
    "admin/aggregates/{aggregate}/manage_hosts/": "Manage Hosts Aggregate",
    "admin/flavors/create/": "Create Flavor",
    "admin/flavors/m1.tiny/update/": "Edit Flavor",
    "admin/volumes/{volume}/": "of-horizon",
    "admin/volumes/{volume}/update_status": "Update Volume Status",
    "admin/volumes/{volume}/migrate": "Migrate Volume",
    "admin/volume_types/create_type": "Create Volume Type",
    "admin/volume_types/{volume_type}/update_type/": "Edit Volume Type",
    "admin/volume_types/{volume_type}/extras/": "Volume Type Extra Specs",
    "admin/volume_types/create_qos_spec": "Create QoS Spec",
    "admin/group_types/create_type": "Create Group Type",
    "admin/networks/{network}/detail": PRIVATE,
    "admin/networks/{network}/detail?tab=network_tabs__subnets_tab": PRIVATE,
    "admin/networks/{network}/detail?tab=network_tabs__ports_tab": PRIVATE,
    "admin/networks/{network}/detail?tab=network_tabs__agents_tab": PRIVATE,
    "admin/networks/create/": "Create Network",
    "admin/routers/{router}/": "router",
    "admin/floating_ips/allocate/": "Allocate Floating IP",
    "admin/defaults/?tab=defaults__volume_quotas": "Default Quotas",
    "admin/defaults/update_defaults": "Update Default Quotas",
    "admin/info/?tab=system_info__nova_services": "System Information",
    "admin/info/?tab=system_info__cinder_services": "System Information",
    "admin/info/?tab=system_info__network_agents": "System Information",
    "admin/metadata_defs/create/": "Create a Metadata Namespace",
    "admin/metadata_defs/{namespace}/detail": "{namespace}",
    "identity/{project}/detail/": "demo",
    "identity/{project}/update/": "Edit Project",
    "identity/create": "Create Project",
    "identity/users/{user}/detail/": "demo",
    "identity/users/{user}/update/": "Update User",
    "identity/users/create/": "Create User",
    "identity/groups/create": "Create Group",
}


@pytest.fixture(scope="module")
def ids(launched: Any, volume: Any, compute: Any) -> dict[str, str]:
    """What the paths name -> its id."""
    (port,) = compute.network.ports(device_id=launched.id)
    with connected(Path(os.environ["OS_CLIENT_CONFIG_FILE"]), ADMIN) as admin:
        hypervisor = next(iter(admin.compute.hypervisors()))
        namespace = next(iter(admin.image.metadef_namespaces()))
        return {
            "server": launched.id,
            "volume": volume.id,
            "port": port.id,
            "network": port.network_id,
            "router": admin.network.find_router("router").id,
            "hypervisor": f"{hypervisor.id}_{hypervisor.name}",
            "aggregate": str(admin.compute.create_aggregate(name="of-horizon").id),
            "volume_type": next(iter(admin.block_storage.types())).id,
            "namespace": namespace.namespace,
            "project": admin.identity.find_project("demo").id,
            "user": admin.identity.find_user("demo").id,
        }


@pytest.mark.parametrize(("path", "title"), OF_A_MEMBER.items())
def test_a_member_opens_every_page_of_single_things(
    member: Dashboard, ids: dict[str, str], path: str, title: str
) -> None:
    member.open(path.format(**ids), title.format(**ids))


@pytest.mark.parametrize(("path", "title"), OF_AN_ADMINISTRATOR.items())
def test_an_administrator_opens_every_page_of_single_things(
    administrator: Dashboard, ids: dict[str, str], path: str, title: str
) -> None:
    administrator.open(path.format(**ids), title.format(**ids))

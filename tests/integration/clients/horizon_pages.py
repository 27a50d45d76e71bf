"""Horizon at ``HORIZON_URL`` in a browser: every page of a member and of an administrator, and a server's life.

A page is all right if it has its title, shows no error, and nothing that it asked the dashboard for failed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from tests.browser import chromium_started, shown
from tests.integration.clients.cloud import ADMIN, IMAGE, MEMBER, connected

MEMBERS = {
    "project/": "Overview",
    "project/api_access/": "API Access",
    "project/instances/": "Instances",
    "project/images": "Images",
    "project/key_pairs": "Key Pairs",
    "project/server_groups": "Server Groups",
    "project/volumes/": "Volumes",
    "project/snapshots/": "Volume Snapshots",
    "project/volume_groups/": "Groups",
    "project/vg_snapshots/": "Group Snapshots",
    "project/network_topology/": "Network Topology",
    "project/networks/": "Networks",
    "project/routers/": "Routers",
    "project/security_groups/": "Security Groups",
    "project/floating_ips/": "Floating IPs",
    "identity/": "Projects",
    "identity/application_credentials/": "Application Credentials",
}
ADMINISTRATORS = {
    "admin/": "Usage Overview",
    "admin/hypervisors/": "Hypervisors",
    "admin/aggregates/": "Host Aggregates",
    "admin/instances/": "Instances",
    "admin/volumes/": "Volumes",
    "admin/flavors/": "Flavors",
    "admin/images": "Images",
    "admin/networks/": "Networks",
    "admin/routers/": "Routers",
    "admin/floating_ips/": "Floating IPs",
    "admin/defaults/": "Default Quotas",
}
# A member may not ask for the names of other projects, whose images it is shown, and the page does without.
_REFUSED_AS_IT_SHOULD_BE = "/api/keystone/projects/"
WIZARD = "wizard"


class Dashboard:
    """A browser in which somebody has logged in."""

    def __init__(self, browser: Any, cloud: str) -> None:
        self.browser, self.url = browser, os.environ["HORIZON_URL"]
        with connected(Path(os.environ["OS_CLIENT_CONFIG_FILE"]), cloud) as connection:
            auth = connection.config.auth
        self.go("auth/login/")
        browser.find_element(By.ID, "id_username").send_keys(auth["username"])
        browser.find_element(By.ID, "id_password").send_keys(auth["password"])
        browser.find_element(By.ID, "loginBtn").click()
        shown(browser, lambda page: "auth/login" not in page.current_url)

    def go(self, path: str) -> None:
        self.browser.get(f"{self.url}/{path}")

    def wait_for(self, selector: str) -> Any:
        """The first visible element that matches."""
        return shown(self.browser, lambda _page: next((one for one in self.all(selector) if one.is_displayed()), None))

    def wait_for_row(self, name: str) -> Any:
        """The arrow that chooses what has this name, in the dialog that launches a server."""
        arrow = f"//{WIZARD}//tr[.//*[normalize-space(text())='{name}']]//*[contains(@class, 'fa-arrow-up')]"

        def found(page: Any) -> Any:
            return next((one for one in page.find_elements(By.XPATH, arrow) if one.is_displayed()), None)

        return shown(self.browser, found)

    def all(self, selector: str) -> list[Any]:
        found: list[Any] = self.browser.find_elements(By.CSS_SELECTOR, selector)
        return found

    def settle(self) -> None:
        """Waits until the page has asked for everything, and has been answered."""
        shown(
            self.browser,
            lambda page: page.execute_script(
                "return document.readyState === 'complete' && (!window.jQuery || jQuery.active === 0)"
                " && (!window.angular || !angular.element('body').injector()"
                " || angular.element('body').injector().get('$http').pendingRequests.length === 0)"
            ),
        )

    def complaints(self) -> list[str]:
        """What the page shows as errors, and what of the dashboard it could not get."""
        said = [one.text for one in self.all(".alert-danger") if one.is_displayed()]
        logged = [line["message"] for line in self.browser.get_log("browser") if line["level"] == "SEVERE"]
        failed = [line for line in logged if "Failed to load resource" in line and _REFUSED_AS_IT_SHOULD_BE not in line]
        return [*said, *failed]

    def choose(self, field: str, text: str) -> None:
        """In a form's list, which the dashboard hides behind one of its own."""
        element = self.browser.find_element(By.ID, field)
        value = next(
            one.get_attribute("value")
            for one in Select(element).options
            if text in (one.get_attribute("textContent") or "")
        )
        self.browser.execute_script(
            "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'));", element, value
        )

    def submit(self) -> None:
        """The form that is a page."""
        self.browser.execute_script(
            "arguments[0].click()", self.all("form input[type=submit], form button[type=submit]")[-1]
        )
        shown(self.browser, lambda page: page.current_url.rstrip("/").endswith("project/instances"))


@pytest.fixture(scope="module")
def member() -> Iterator[Dashboard]:
    with chromium_started() as browser:
        browser.set_window_size(1600, 1400)
        yield Dashboard(browser, MEMBER)


@pytest.fixture(scope="module")
def administrator() -> Iterator[Dashboard]:
    with chromium_started() as browser:
        browser.set_window_size(1600, 1400)
        yield Dashboard(browser, ADMIN)


@pytest.fixture(scope="module")
def compute() -> Iterator[Any]:
    with connected(Path(os.environ["OS_CLIENT_CONFIG_FILE"]), MEMBER) as connection:
        yield connection


@pytest.fixture(scope="module")
def launched(member: Dashboard, compute: Any) -> Any:
    """A server that a member launched by the dialog of the dashboard."""
    member.go("project/instances/")
    member.wait_for("#instances__action_launch-ng").click()
    member.wait_for(f"{WIZARD} input#name").send_keys("of-horizon")
    member.settle()
    # The only network is chosen already.
    for step, choice in (("Source", IMAGE), ("Flavor", "m1.tiny")):
        xpath = f"//div[contains(@class, 'wizard-nav')]//*[normalize-space(text())='{step}']"
        member.browser.find_element(By.XPATH, xpath).click()
        member.wait_for_row(choice).click()
    shown(member.browser, lambda _page: member.wait_for(f"{WIZARD} button.finish").is_enabled())
    member.wait_for(f"{WIZARD} button.finish").click()
    server = shown(member.browser, lambda _page: compute.compute.find_server("of-horizon"))
    return compute.compute.wait_for_server(server, wait=120)


@pytest.mark.parametrize(("path", "title"), MEMBERS.items())
def test_a_member_sees(member: Dashboard, path: str, title: str) -> None:
    check(member, path, title)


@pytest.mark.parametrize(("path", "title"), ADMINISTRATORS.items())
def test_an_administrator_sees(administrator: Dashboard, path: str, title: str) -> None:
    check(administrator, path, title)


def check(dashboard: Dashboard, path: str, title: str) -> None:
    dashboard.go(path)
    shown(dashboard.browser, lambda page: page.title == f"{title} - OpenStack Dashboard")
    dashboard.settle()
    assert dashboard.complaints() == []


def test_a_server_is_launched(launched: Any) -> None:
    assert launched.status == "ACTIVE"
    assert launched.flavor.name == "m1.tiny"


def test_it_is_resized_and_confirmed(member: Dashboard, launched: Any, compute: Any) -> None:
    member.go(f"project/instances/{launched.id}/resize")
    member.settle()
    member.choose("id_flavor", "m1.small")
    member.submit()
    compute.compute.wait_for_server(launched, status="VERIFY_RESIZE", wait=120)
    member.go("project/instances/")
    member.wait_for(f"#instances__row_{launched.id}__action_confirm").click()
    found = compute.compute.wait_for_server(launched, status="ACTIVE", wait=120)
    assert found.flavor.name == "m1.small"


def test_a_volume_is_attached(member: Dashboard, launched: Any, compute: Any) -> None:
    volume = compute.block_storage.create_volume(name="of-horizon", size=1)
    compute.block_storage.wait_for_status(volume, "available", wait=120)
    member.go(f"project/instances/{launched.id}/attach_volume/")
    member.settle()
    member.choose("id_volume", "of-horizon")
    member.submit()
    compute.block_storage.wait_for_status(volume, "in-use", wait=120)
    assert [one.id for one in compute.compute.volume_attachments(launched)] == [volume.id]

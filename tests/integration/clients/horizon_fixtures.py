"""Who uses Horizon, and what there is to see: a plug-in of pytest for the tests of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By

from tests.browser import chromium_started, shown
from tests.integration.clients.cloud import ADMIN, IMAGE, MEMBER, connected
from tests.integration.clients.horizon_browser import WIZARD, Dashboard


@contextmanager
def _logged_in(cloud: str) -> Iterator[Dashboard]:
    with chromium_started() as browser:
        browser.set_window_size(1600, 1400)
        yield Dashboard(browser, cloud)


@pytest.fixture(scope="session")
def member() -> Iterator[Dashboard]:
    with _logged_in(MEMBER) as dashboard:
        yield dashboard


@pytest.fixture(scope="session")
def administrator() -> Iterator[Dashboard]:
    with _logged_in(ADMIN) as dashboard:
        yield dashboard


@pytest.fixture(scope="session")
def compute() -> Iterator[Any]:
    with connected(Path(os.environ["OS_CLIENT_CONFIG_FILE"]), MEMBER) as connection:
        yield connection


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def volume(compute: Any) -> Any:
    """It is available."""
    made = compute.block_storage.create_volume(name="of-horizon", size=1)
    return compute.block_storage.wait_for_status(made, "available", wait=120)

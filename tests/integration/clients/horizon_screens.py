"""The console of a real guest in Horizon: noVNC, from our proxy, in its page."""

from __future__ import annotations

from typing import Any

from selenium.webdriver.common.by import By

from tests.browser import COLOURS, shown
from tests.integration.clients.cloud import PRIVATE
from tests.integration.clients.horizon_browser import Dashboard


def test_the_page_of_a_server_shows_its_screen(member: Dashboard, compute: Any) -> None:
    server = compute.create_server("of-horizon", image="demo", flavor="m1.tiny", network=PRIVATE, wait=True)
    member.open(f"project/instances/{server.id}/?tab=instance_details__console", server.name)
    browser = member.browser
    browser.switch_to.frame(member.wait_for("iframe#console_embed"))
    try:
        shown(browser, lambda page: page.find_element(By.ID, "standing").text == "Connected")
        # What the guest's firmware wrote.
        shown(browser, lambda page: page.execute_script(COLOURS) > 1)
    finally:
        browser.switch_to.default_content()

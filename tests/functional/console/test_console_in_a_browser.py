"""The console in a real browser, with mouse, keyboard and on a small screen. Skipped without Debian's chromium."""

from __future__ import annotations

import uuid as uuids
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from causeway.cli.demo.picture import pictures_of
from causeway.cli.demo.screen import Screen
from causeway.model.adoption import HostState
from causeway.model.drains import Drain, DrainRequest, DrainServer, DrainState, Scope
from causeway.store.api import adopted_hosts, drains
from tests.browser import chromium_started, shown
from tests.functional.console.adopted_cloud import FOLDER, PORT, imported
from tests.functional.console.conftest import Served

SIZES = {"wide": (1600, 1000), "usual": (1280, 800), "narrow": (390, 844)}

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with chromium_started() as made:
        yield made


@pytest.fixture
def browser(chromium: Any, opened: Served) -> Any:
    chromium.set_window_size(*SIZES["usual"])
    chromium.get(f"{opened.url}/enter?token={opened.sessions.token}")
    opened.url = chromium.current_url.rstrip("/")
    return chromium


def planned(cloud: Any, name: str) -> Drain:
    server = cloud.boot()
    made = Drain(id=str(uuids.uuid4()), request=DrainRequest(name, Scope(cells=["cell1"])))
    drains.create(
        cloud.parts.api_database, made, [DrainServer(drain_id=made.id, instance_uuid=server.id, name=server.name)]
    )
    return made


def test_what_changes_is_seen_without_loading_the_page_again(browser: Any, opened: Served, cloud: Any) -> None:
    browser.get(f"{opened.url}/drains")
    shown(browser, lambda at: "Live" in at.find_element(By.ID, "live").text)
    browser.execute_script("window.stays = true")
    made = planned(cloud, "seen at once")
    shown(browser, lambda at: "seen at once" in at.find_element(By.ID, "drains").text)
    drains.transit(cloud.parts.api_database, made.id, DrainState.CANCELLED)
    shown(browser, lambda at: "cancelled" in at.find_element(By.ID, "drains").text)
    assert browser.execute_script("return window.stays")


def test_a_drain_is_cancelled_with_the_keyboard_alone(browser: Any, opened: Served, cloud: Any) -> None:
    made = planned(cloud, "by keyboard")
    browser.get(f"{opened.url}/drains/{made.id}")

    def tab_to(identity: str) -> None:
        reached = []
        for _ in range(30):
            reached.append(browser.switch_to.active_element.get_attribute("id"))
            if reached[-1] == identity:
                return
            ActionChains(browser).send_keys(Keys.TAB).perform()
        raise AssertionError(f"{identity} is not reached: {reached}")

    tab_to("cancel")
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    shown(browser, lambda at: at.find_elements(By.ID, "yes"))
    tab_to("yes")
    ActionChains(browser).send_keys(Keys.ENTER).perform()
    shown(browser, lambda at: "cancelled" in at.find_element(By.ID, "standing").text)
    assert drains.get(cloud.parts.api_database, made.id).state is DrainState.CANCELLED


def test_the_focus_stays_when_the_page_changes(browser: Any, opened: Served, cloud: Any) -> None:
    made = planned(cloud, "focus")
    browser.get(f"{opened.url}/drains/{made.id}")
    shown(browser, lambda at: "Live" in at.find_element(By.ID, "live").text)
    browser.execute_script("document.getElementById('cancel').focus()")
    drains.transit(cloud.parts.api_database, made.id, DrainState.RUNNING)
    shown(browser, lambda at: "running" in at.find_element(By.ID, "standing").text)
    assert browser.switch_to.active_element.get_attribute("id") == "cancel"
    drains.transit(cloud.parts.api_database, made.id, DrainState.CANCELLING)
    # The hosts that it closed are open again for the tests that follow.
    shown(browser, lambda at: "cancelled" in at.find_element(By.ID, "standing").text)


@pytest.fixture
def adopted(cloud: Any) -> Iterator[None]:
    with imported(cloud, [PORT, FOLDER]):
        yield


@pytest.mark.usefixtures("adopted")
@pytest.mark.parametrize("size", list(SIZES))
def test_pages_fit_and_load_nothing_from_elsewhere(
    browser: Any, opened: Served, cloud: Any, size: str, tmp_path: Path
) -> None:
    server = cloud.resized(cloud.boot())
    made = planned(cloud, "a picture")
    browser.set_window_size(*SIZES[size])
    browser.get_log("performance"), browser.get_log("browser")
    pages = ("/", "/drains", f"/drains/{made.id}", "/operations", f"/servers/{server.id}", "/audit?look=1", "/adoption")
    for path in pages:
        browser.get(opened.url + path)
        assert browser.title.endswith("Causeway"), path
        picture = tmp_path / f"{size}{path.replace('/', '-').partition('?')[0]}.png"
        assert browser.save_screenshot(str(picture))
        wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"{path} is wider than the screen"
        assert browser.find_element(By.TAG_NAME, "h1").is_displayed()
    said = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert said == []
    asked = [entry["message"] for entry in browser.get_log("performance") if 'requestWillBeSent"' in entry["message"]]
    assert asked
    assert all(opened.origin in message for message in asked)


@pytest.mark.usefixtures("adopted")
def test_on_a_small_screen_hosts_that_are_taken_over_are_read_without_scrolling_sideways(
    browser: Any, opened: Served, cloud: Any
) -> None:
    browser.set_window_size(*SIZES["narrow"])
    browser.get(f"{opened.url}/adoption")
    shown(browser, lambda at: "Live" in at.find_element(By.ID, "live").text)
    for part in browser.find_elements(By.CSS_SELECTOR, "section"):
        assert browser.execute_script("return arguments[0].scrollWidth - arguments[0].clientWidth", part) <= 0
    assert "Detach <b>it</b>." in browser.find_element(By.ID, "hosts").text
    # It changes without being loaded again.
    (found,) = [one for one in adopted_hosts.all_hosts(cloud.parts.api_database) if one.findings]
    found.state, found.findings = HostState.TAKEN, []
    adopted_hosts.save(cloud.parts.api_database, found)
    shown(browser, lambda at: "2 of 3 hosts taken" in at.find_element(By.ID, "progress").text)


def test_the_demonstration_makes_pictures_of_the_pages(opened: Served, cloud: Any, tmp_path: Path) -> None:
    made, way_in = planned(cloud, "in a picture"), f"{opened.url}/enter?token={opened.sessions.token}"
    pages = {"/": tmp_path / "cells.png", f"/drains/{made.id}": tmp_path / "drain.png"}
    titles = pictures_of(way_in, pages, Screen())
    assert "in a picture" in titles[1]
    assert all(picture.stat().st_size > 10_000 for picture in pages.values())

"""Pictures of pages of the console, made by the browser of this machine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from causeway.cli.demo.screen import Screen

WIDTH, HEIGHT = 1280, 1000


def pictures_of(way_in: str, pages: Mapping[str, Path], screen: Screen) -> list[str]:
    """The titles of the pages; none if there is no browser, and it says so. ``way_in``: the URL that opens the console once."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None or find_spec("selenium") is None:
        screen.note(f"No picture of the console: there is no chromium here, or no selenium. It is at {way_in}")
        return []
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    titles = []
    with screen.working("Pictures of the console are made"):
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            browser.set_window_size(WIDTH, HEIGHT)
            browser.get(way_in)
            for page, path in pages.items():
                browser.get(way_in.partition("/enter")[0] + page)
                titles.append(browser.find_element(By.TAG_NAME, "h1").text)
                browser.save_screenshot(str(path))
        finally:
            browser.quit()
    return titles

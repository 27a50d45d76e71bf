"""A picture of a page of the console, made by the browser of this machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from causeway.cli.demo.screen import Screen

WIDTH, HEIGHT = 1280, 1000


def picture_of(way_in: str, page: str, path: Path, screen: Screen) -> None:
    """``way_in``: the URL that opens the console once. Says why there is no picture if there is no browser."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        screen.note(f"No picture of the console: there is no chromium here. It is at {way_in}")
        return
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    with screen.working("A picture of the console is made"):
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            browser.set_window_size(WIDTH, HEIGHT)
            browser.get(way_in)
            browser.get(way_in.partition("/enter")[0] + page)
            title = browser.find_element(By.TAG_NAME, "h1").text
            browser.save_screenshot(str(path))
        finally:
            browser.quit()
    screen.check("the console shows the drain", "drain" in title.lower(), str(path))

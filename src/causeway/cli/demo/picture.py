"""Pictures of pages, made by the browser of this machine: of the console for operators, and of consoles of servers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from causeway.cli.demo.screen import Screen

WIDTH, HEIGHT = 1280, 1000
# Seconds that a guest may take to write to its console.
WRITTEN = 120


def pictures_of(way_in: str, pages: Mapping[str, Path], screen: Screen) -> list[str]:
    """Makes pictures of pages of the console for operators; returns the pages' headings, or none if there is no browser.

    ``way_in``: the URL that opens the console once.
    """
    with _browser(screen, way_in) as browser:
        if browser is None:
            return []
        titles = []
        browser.get(way_in)
        # It leads to the first page, below a secret path.
        root = browser.current_url.rstrip("/")
        for page, path in pages.items():
            browser.get(root + page)
            titles.append(browser.find_element("tag name", "h1").text)
            browser.save_screenshot(str(path))
        return titles


def picture_of(url: str, path: Path, screen: Screen) -> str | None:
    """A picture of the page of a server's serial console, once the guest has written to it.

    Returns the page's title, or None if there is no browser.
    """
    with _browser(screen, url) as browser:
        if browser is None:
            return None
        from selenium.webdriver.support.wait import WebDriverWait

        browser.get(url)
        WebDriverWait(browser, WRITTEN).until(lambda at: at.find_element("id", "terminal").text.strip())
        browser.save_screenshot(str(path))
        return str(browser.title)


@contextmanager
def _browser(screen: Screen, url: str) -> Iterator[Any]:
    """This machine's chromium; None if there is none."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None or find_spec("selenium") is None:
        screen.note(f"No picture is made: there is no chromium here, or no selenium. The page is at {url}")
        yield None
        return
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    with screen.working("A picture is made"):
        browser = webdriver.Chrome(options=options, service=Service(driver))
        try:
            browser.set_window_size(WIDTH, HEIGHT)
            yield browser
        finally:
            browser.quit()

"""Debian's chromium, for tests that look at pages as users do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.wait import WebDriverWait

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PATIENCE = 60
# How many colours are in the picture of noVNC on our page: one is an empty screen.
COLOURS = """
let c = document.querySelector('#screen canvas');
let d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, seen = new Set();
for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
return seen.size
"""


@contextmanager
def chromium_started() -> Iterator[Any]:
    """Skips the test if there is no chromium. Its tests have the marker ``browser``."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no chromium: scripts/install-packages.sh --servers installs it")
    options = webdriver.ChromeOptions()
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en"):
        options.add_argument(word)
    options.binary_location = CHROMIUM or ""
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield made
    finally:
        made.quit()


def shown(browser: Any, what: Callable[[Any], Any]) -> Any:
    """What is there when it is there."""
    return WebDriverWait(browser, PATIENCE).until(what)

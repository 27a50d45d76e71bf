"""A browser in which somebody has logged in to Horizon at ``HORIZON_URL``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select

from tests.browser import shown
from tests.integration.clients.cloud import connected

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

    def open(self, path: str, title: str) -> None:
        """A page that must be all right: it has its title, shows no error, and nothing that it asked the dashboard for failed."""
        self.go(path)
        shown(self.browser, lambda page: page.title == f"{title} - OpenStack Dashboard")
        self.settle()
        assert self.complaints() == []

    def menu(self) -> set[str]:
        """The paths that the menus at the side and of the user lead to, except those that log out or switch projects."""
        script = "return [...document.querySelectorAll(arguments[0])].map(link => link.getAttribute('href'))"
        links = self.browser.execute_script(script, "#sidebar-accordion a[href^='/'], .dropdown-menu a[href^='/']")
        return {link.strip("/") for link in links if not link.startswith("/auth/")}

    def fetch(self, path: str) -> str:
        """What the dashboard answers, where a browser would store it in a file."""
        script = "fetch(arguments[0]).then(answer => answer.text()).then(arguments[1])"
        return str(self.browser.execute_async_script(script, f"/{path}"))

    def wait_for(self, selector: str) -> Any:
        """The first visible element that matches."""
        return shown(self.browser, lambda _page: next((one for one in self.all(selector) if one.is_displayed()), None))

    def wait_for_text(self, selector: str, *wanted: str) -> None:
        """What is visible and matches has all of these in it."""

        def seen(_page: Any) -> bool:
            text = "\n".join(one.text for one in self.all(selector) if one.is_displayed())
            return all(part in text for part in wanted)

        shown(self.browser, seen)

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

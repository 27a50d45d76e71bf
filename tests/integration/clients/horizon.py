"""Horizon in a browser, as a member and as an administrator see it.

Its pages are opened on simulated hosts (`horizon_pages`, `horizon_servers`), a screen on a real guest (`horizon_screens`), and
what was logged meanwhile is looked at (`horizon_logs`).
"""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from causeway.virt.lab.hosts import missing
from tests.integration.clients import pytests
from tests.integration.clients.cloud import MEMBER, cloud_of_guests, connected
from tests.integration.clients.counts import Counts
from tests.integration.clients.tools import Tool
from tests.ports import free_port

# Its dashboards still need pkg_resources.
TOOL = Tool("horizon", ("horizon", "setuptools"))
# Seconds: its first page compiles what all pages look like.
_READY_WITHIN, _ENDS_WITHIN = 300.0, 30.0
# The last one looks at what the others left in the logs.
_MODULES = ("horizon_pages", "horizon_servers", "horizon_logs")
# Only real guests have screens.
_OF_GUESTS = ("horizon_screens", "horizon_logs")
_FIXTURES = "tests.integration.clients.horizon_fixtures"
_SETTINGS = """\
from openstack_dashboard.settings import *

# Static files come from where they were installed, and what is compiled of them goes to a folder of ours.
DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1"]
SECRET_KEY = "a key of a test"
OPENSTACK_KEYSTONE_URL = {identity!r}
SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
CACHES = {{"default": {{"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}}}
STATIC_ROOT = COMPRESS_ROOT = {static!r}
# Its page of a server has a frame with its own page of the serial console.
X_FRAME_OPTIONS = "SAMEORIGIN"
LAUNCH_INSTANCE_DEFAULTS = {{"create_volume": False}}
"""


@contextmanager
def dashboard(clouds: Path, directory: Path) -> Iterator[str]:
    """Its URL; it has ended afterwards."""
    settings = directory / "settings"
    settings.mkdir()
    with connected(clouds, MEMBER) as member:
        identity = member.config.auth["auth_url"]
    written = _SETTINGS.format(identity=identity, static=str(directory / "static"))
    (settings / "dashboard_settings.py").write_text(written)
    given = {"DJANGO_SETTINGS_MODULE": "dashboard_settings", "PYTHONPATH": str(settings)}
    address = f"127.0.0.1:{free_port()}"
    with _log(directory).open("wb") as log:
        process = subprocess.Popen(
            [TOOL.bin / "django-admin", "runserver", "--noreload", address],
            env=TOOL.environment(clouds, directory) | given, cwd=directory, stdout=log, stderr=log,
        )  # fmt: skip
        try:
            _wait_for(f"http://{address}/auth/login/", process)
            yield f"http://{address}"
        finally:
            process.terminate()
            process.wait(_ENDS_WITHIN)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + _READY_WITHIN
    while True:
        try:
            with urllib.request.urlopen(url, timeout=_READY_WITHIN):
                return
        except urllib.error.URLError as error:
            if process.poll() is not None or time.monotonic() > ends:
                raise RuntimeError("Horizon does not serve; what it said is in horizon.log") from error
            time.sleep(0.3)


def run(regex: str, clouds: Path, directory: Path, json_file: Path | None) -> int:
    """``regex``: which tests, by their names."""
    counts = _counted(_MODULES, regex, clouds, directory)
    if (reason := missing()) is not None:
        counts.skipped[reason] += 1
    else:
        guests = directory / "guests"
        guests.mkdir()
        with cloud_of_guests(guests) as own:
            counts.add(_counted(_OF_GUESTS, regex, own, guests))
    return counts.report(json_file)


def _counted(modules: Sequence[str], regex: str, clouds: Path, directory: Path) -> Counts:
    """On the cloud in whose folder ``directory`` everything is."""
    files = [Path(__file__).with_name(f"{name}.py") for name in modules]
    with dashboard(clouds, directory) as url:
        environment = TOOL.environment(clouds, directory) | {"HORIZON_URL": url, "HORIZON_LOG": str(_log(directory))}
        of_cloud = directory / "state/causeway.log"
        if of_cloud.exists():
            environment["CLOUD_LOG"] = str(of_cloud)
        return pytests.counted(Path(sys.executable), files, regex, environment, directory, _FIXTURES)


def _log(directory: Path) -> Path:
    return directory / "horizon.log"

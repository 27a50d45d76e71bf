"""Horizon: its pages in a browser, as a member and as an administrator see them (`horizon_pages`)."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.integration.clients import pytests
from tests.integration.clients.cloud import MEMBER, connected
from tests.integration.clients.tools import Tool
from tests.ports import free_port

# Its dashboards still need pkg_resources.
TOOL = Tool("horizon", ("horizon", "setuptools"))
# Seconds: its first page compiles what all pages look like.
_READY_WITHIN, _ENDS_WITHIN = 300.0, 30.0
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
    with (directory / "horizon.log").open("wb") as log:
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
    module = Path(__file__).with_name("horizon_pages.py")
    with dashboard(clouds, directory) as url:
        environment = TOOL.environment(clouds, directory) | {"HORIZON_URL": url}
        return pytests.run(Path(sys.executable), module, regex, environment, directory, json_file)

"""``causeway up`` has the console at ``/console``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import requests


def test_a_cloud_that_runs_has_it(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-m", "causeway", "up", "--state-dir", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as cloud, requests.Session() as browser:
        assert cloud.stdout is not None
        way_in = cloud.stdout.readline().strip().removeprefix("console: ")
        assert cloud.stdout.readline().startswith("ready: ")
        url = way_in.partition("/enter")[0]
        assert url.endswith("/console")
        assert browser.get(url, timeout=60).status_code == 401
        page = browser.get(way_in, timeout=60)
        assert (page.status_code, page.url) == (200, f"{url}/")
        assert "cell2" in page.text
        assert f'href="{url.partition("://")[2].partition("/")[1]}console/drains"' in page.text
        assert requests.get(way_in, timeout=60).status_code == 401
        with browser.get(f"{url}/events/", stream=True, timeout=60) as events:
            assert next(events.iter_lines(decode_unicode=True)).startswith("data: ")
        cloud.terminate()
        assert cloud.wait(60) == 0

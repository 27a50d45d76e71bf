"""``causeway up`` has the console at ``/console``."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import requests


def test_a_cloud_that_runs_has_it(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("causeway")), "up", "--state-dir", str(tmp_path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as cloud, requests.Session() as browser:
        try:
            assert cloud.stdout is not None
            assert cloud.stdout.readline().startswith("ready: ")
            way_in = cloud.stdout.readline().strip().removeprefix("console: ")
            url = way_in.partition("/enter")[0]
            assert url.endswith("/console")
            assert browser.get(url, timeout=60).status_code == 401
            page = browser.get(way_in, timeout=60)
            assert (page.status_code, page.url) == (200, f"{url}/")
            assert "cell2" in page.text
            assert 'href="/console/drains"' in page.text
            # It opens once.
            assert requests.get(way_in, timeout=60).status_code == 401
            events = re.search(r'data-events="/console(\S+)"', page.text)
            assert events is not None
            with browser.get(url + events[1], stream=True, timeout=60) as stream:
                assert any(line.startswith("data: ") for line in stream.iter_lines(decode_unicode=True))
        finally:
            cloud.terminate()
        assert cloud.wait(60) == 0

"""``causeway up`` has the console at ``/console``."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import requests

CAUSEWAY = str(Path(sys.executable).with_name("causeway"))


@pytest.mark.long
def test_what_is_misspelt_is_shown_beside_ready(tmp_path: Path) -> None:
    options, policy = tmp_path / "causeway.conf", tmp_path / "policy.yaml"
    options.write_text("[moves]\nleese = 3\n")
    policy.write_text('"os_compute_api:servers:shwo": "role:reader"\n')
    files = [f"--config-file={options}", f"--policy-file={policy}"]
    command = [CAUSEWAY, "up", f"--state-dir={tmp_path}/state", "--port=0", *files]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as cloud:
        assert cloud.stdout is not None and cloud.stderr is not None
        said = [cloud.stdout.readline(), cloud.stdout.readline()]
        # It ends at once, and so do its lines.
        cloud.terminate()
        warnings = [line for line in cloud.stderr if line.startswith("warning: ")]
        assert cloud.wait(60) == 0
    assert said[0].startswith("ready: ")
    assert warnings == [
        "warning: Options that do nothing. unknown: [moves] leese.\n",
        "warning: Unknown policy rules: os_compute_api:servers:shwo in "
        f"{policy} (is os_compute_api:servers:show meant?).\n",
    ]


@pytest.mark.long
def test_a_cloud_that_runs_has_it(tmp_path: Path) -> None:
    command = [CAUSEWAY, "up", "--state-dir", str(tmp_path), "--port", "0"]
    progress = tmp_path / "progress"
    with (
        progress.open("w") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as cloud,
        requests.Session() as browser,
    ):
        try:
            assert cloud.stdout is not None
            assert cloud.stdout.readline().startswith("ready: ")
            # What it was doing meanwhile, each with its seconds.
            lines = [line.partition(" s  ") for line in progress.read_text().splitlines() if " s  " in line]
            assert [float(seconds) for seconds, _, _ in lines] == sorted(float(seconds) for seconds, _, _ in lines)
            said_so = " ".join(what for _, _, what in lines)
            assert all(word in said_so for word in ("databases", "computes of 2 hosts", "an image", "started"))
            way_in = cloud.stdout.readline().strip().removeprefix("console: ")
            url = way_in.partition("/enter")[0]
            assert url.endswith("/console")
            assert browser.get(url, timeout=60).status_code == 401
            page = browser.get(way_in, timeout=60)
            assert page.status_code == 200
            # Its pages are below a secret, which no other program of the machine gets.
            assert re.fullmatch(rf"{url}/[0-9a-f]{{32}}/", page.url)
            assert "cell2" in page.text
            assert f'href="{urlsplit(page.url).path}drains"' in page.text
            # It opens once.
            assert requests.get(way_in, timeout=60).status_code == 401
            events = re.search(r'data-events="/console(\S+)"', page.text)
            assert events is not None
            with browser.get(url + events[1], stream=True, timeout=60) as stream:
                assert any(line.startswith("data: ") for line in stream.iter_lines(decode_unicode=True))
        finally:
            cloud.terminate()
        assert cloud.wait(60) == 0

"""The README's five minutes, typed as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent
README = Path(__file__).parents[3] / "README.md"
PATIENCE = 500


@pytest.mark.timeout(PATIENCE)
def test_five_minutes_with_it(tmp_path: Path) -> None:
    section = README.read_text().partition("## Five minutes with it")[2].partition("\n## ")[0]
    start, typed = re.findall(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert ".venv/bin/causeway up " in start
    environment = os.environ | {
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(tmp_path / ".local" / "share"),
        "COLUMNS": "200",
        "PATH": f"{BIN}:{os.environ['PATH']}",
    }
    # The environment is this test's own already.
    script = "set -eux\n" + typed.replace(". .venv/bin/activate\n", "")
    with subprocess.Popen(
        ["causeway", "up", "--port", "0"], stdout=subprocess.PIPE, text=True, env=environment
    ) as cloud:
        try:
            assert cloud.stdout is not None
            assert cloud.stdout.readline().startswith("ready: ")
            done = subprocess.run(
                ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE
            )
        finally:
            cloud.terminate()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "VERIFY_RESIZE" in done.stdout
    assert "cell2-host1" in done.stdout
    assert "cross_cell_resize" in done.stdout

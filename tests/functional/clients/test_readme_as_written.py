"""The README's five minutes, typed as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.as_written import PATIENCE, cloud_at, typed

README = Path(__file__).parents[3] / "README.md"


@pytest.mark.long
@pytest.mark.timeout(PATIENCE)
def test_the_five_minutes_of_the_readme_work_as_typed(tmp_path: Path) -> None:
    section = README.read_text().partition("## Five minutes with it")[2].partition("\n## ")[0]
    start, commands = re.findall(r"^```\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert ".venv/bin/causeway up " in start
    with cloud_at(tmp_path):
        # The environment is this test's own already.
        shown = typed(commands.replace(". .venv/bin/activate\n", ""), tmp_path)
    assert "VERIFY_RESIZE" in shown
    assert "cell2-host1" in shown
    assert "resize" in shown

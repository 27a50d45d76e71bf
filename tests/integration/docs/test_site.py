"""The site is made without a warning, and asks for nothing from elsewhere."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys

import pytest

from docs.site import stage

MISSING = [
    name
    for name in ("furo", "matplotlib", "myst_parser", "sphinx", "sphinx_click")
    if not importlib.util.find_spec(name)
]


@pytest.mark.timeout(600)
@pytest.mark.skipif(bool(MISSING), reason=f"the extra 'docs' is not installed ({', '.join(MISSING)}): make docs")
def test_the_site_is_made_without_a_warning() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "docs.site"]
    made = subprocess.run(command, cwd=stage.ROOT, capture_output=True, text=True, check=False, timeout=580)
    assert made.returncode == 0, made.stderr
    pages = sorted((stage.ROOT / "build/docs").rglob("*.html"))
    assert len(pages) > 50
    loaded = [
        f"{page.name}: {address}"
        for page in pages
        for address in re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="(https?:[^"]*)"', page.read_text())
    ]
    assert loaded == []

"""Every link of the documentation that stays in the repository leads somewhere, with its anchor."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from docs.site.stage import ROOT, pages

PAGES = pages()
# [text](target), also where the text has brackets or is code; images are links too.
LINK = re.compile(r"\]\(([^()\s]+)\)")
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    text = FENCED.sub("", page.read_text())
    return [target for target in LINK.findall(text) if not re.match(r"[a-z]+:", target)]


@cache
def anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings: lower case, no punctuation, dashes for spaces, a number where one is repeated."""
    found: dict[str, int] = {}
    made: set[str] = set(re.findall(r'<a id="([^"]+)">', page.read_text()))
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", FENCED.sub("", page.read_text()), re.MULTILINE):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        made.add(slug if slug not in found else f"{slug}-{found[slug]}")
        found[slug] = found.get(slug, 0) + 1
    return made


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    dead = []
    for target in links(page):
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            dead.append(target)
    assert dead == []


def test_links_of_the_documentation_are_found() -> None:
    assert sum(len(links(page)) for page in PAGES) > 20


def test_pages_and_sections_that_code_names_exist() -> None:
    """Code names a section by its page, a comma, and the beginning of its heading in quotes."""
    dead = []
    for file in [*sorted((ROOT / "src").rglob("*.py")), *sorted((ROOT / "tests").rglob("*.py"))]:
        for name, heading in re.findall(r'\b(docs/[\w./-]+\.md)(?:,\s+"([^"]+)")?', file.read_text()):
            text = (ROOT / name).read_text() if (ROOT / name).exists() else ""
            if not re.search(rf"^#+ {re.escape(heading)}", text, re.MULTILINE):
                dead.append(f"{file.relative_to(ROOT)}: {name} {heading}")
    assert dead == []

"""The order of the pages: docs/README.md, which people read on a code host, is also the site's table of contents."""

from __future__ import annotations

import re

# Pages that are made, by the heading of docs/README.md under which they stand.
MADE = {
    "Operate": ("reference/options", "reference/policies", "reference/commands"),
    "The API": ("reference/api/index",),
    "How it works": ("architecture/recipes",),
}
_LINK = re.compile(r"^[-*] .*?\]\(([^)#]+)\.md(?:#[^)]*)?\)", re.MULTILINE)


def parts(readme: str) -> dict[str, list[str]]:
    """heading -> pages, as paths below docs/ without their ending; the first link of each item of a list counts."""
    found: dict[str, list[str]] = {}
    for section in re.split(r"^## ", readme, flags=re.MULTILINE)[1:]:
        heading, _, text = section.partition("\n")
        found[heading.strip()] = list(dict.fromkeys(_LINK.findall(text)))
    return found


def toctrees(readme: str) -> str:
    """The same as hidden toctrees of MyST. Raises ValueError if a heading of `MADE` is not there."""
    listed = parts(readme)
    if missing := set(MADE) - set(listed):
        raise ValueError(f"docs/README.md: there is no section {sorted(missing)}")
    seen: set[str] = set()
    blocks = []
    for heading, pages in listed.items():
        entries = [page for page in (*pages, *MADE.get(heading, ())) if page not in seen]
        seen |= set(entries)
        if entries:
            blocks.append(
                "\n".join(["```{toctree}", ":hidden:", f":caption: {heading}", ":maxdepth: 2", "", *entries, "```", ""])
            )
    return "\n".join(blocks)

"""``python -m docs.site``: makes build/docs. Any warning is an error."""

from __future__ import annotations

import sys

from sphinx.cmd.build import main as sphinx

from docs.site import stage

SOURCE, TARGET = stage.ROOT / "build/docs-source", stage.ROOT / "build/docs"
LINK_CHECK = "--check-external-links"


def build(builder: str = "html") -> int:
    """The exit status of Sphinx. ``builder``: ``linkcheck`` asks for every external link instead."""
    stage.stage(SOURCE)
    cache = str(SOURCE.parent / "docs-cache")
    options = ["-W", "--keep-going", "-q", "-b", builder, "-c", str(stage.ROOT / "docs/site"), "-d", cache]
    output = TARGET if builder == "html" else TARGET.with_name(f"docs-{builder}")
    return int(sphinx([*options, str(SOURCE), str(output)]))


if __name__ == "__main__":
    if sys.argv[1:] not in ([], [LINK_CHECK]):
        sys.exit(f"usage: python -m docs.site [{LINK_CHECK}]")
    status = build("linkcheck" if sys.argv[1:] else "html")
    if status == 0 and not sys.argv[1:]:
        print(f"docs: {TARGET / 'docs/README.html'}")
    sys.exit(status)

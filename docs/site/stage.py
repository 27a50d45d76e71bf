"""Lays out what Sphinx reads: the Markdown pages as they are in the repository, and those that are made from the code."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from causeway.conf.sample import NAMESPACES
from docs.site import api, contents, plots, recipes, sequence

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^()\s]+)\)")
_ANCHOR = re.compile(r'^<a id="([^"]+)"></a>', re.MULTILINE)
# A diagram that stands in a page.
MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# These are reStructuredText: the directives make sections.
OPTIONS = """Options
=======

Made from the code. The same as a file with comments: :download:`causeway.conf.sample <../causeway.conf.sample>`. How to use
them: :doc:`../configure`. Libraries read options from the same file:

.. toctree::
   :maxdepth: 1

{pages}

.. show-options::

   causeway
"""
LIBRARY_OPTIONS = """Options of {name}
==========================================

Made from the library.

.. show-options::

   {name}
"""
POLICIES = """Policy
======

Every rule with its default and the operations that it guards, made from the code. Who has which role: :doc:`../configure`.

.. show-policy::
   :config-file: docs/policy-generator.conf
"""
POLICY_GENERATOR = "[DEFAULT]\nnamespace = causeway\n"
COMMANDS = """Commands
========

Made from the command line itself, as ``causeway COMMAND --help`` shows it.

.. click:: causeway.cli.main:cli
   :prog: causeway
   :nested: full
"""


def stage(target: Path) -> None:
    """Writes everything below ``target``, which is replaced. The site's root is ``docs/README``."""
    shutil.rmtree(target, ignore_errors=True)
    for page in pages():
        _write(target / page.relative_to(ROOT), _page(page, target))
    docs = target / "docs"
    _ours, *libraries = NAMESPACES
    names = {name: f"options-{name.replace('.', '-')}" for name in libraries}
    _write(docs / "reference/options.rst", OPTIONS.format(pages="\n".join(f"   {file}" for file in names.values())))
    for name, file in names.items():
        _write(docs / f"reference/{file}.rst", LIBRARY_OPTIONS.format(name=name))
    _write(docs / "policy-generator.conf", POLICY_GENERATOR)
    _write(docs / "reference/policies.rst", POLICIES)
    _write(docs / "reference/commands.rst", COMMANDS)
    shutil.copy(ROOT / "docs/causeway.conf.sample", docs)
    references = api.pages()
    for name, text in references.items():
        _write(docs / f"reference/api/{name}.md", text)
    toctree = "\n".join(["```{toctree}", ":hidden:", "", *references, "```", ""])
    _write(docs / "reference/api/index.md", f"{api.index(list(references))}\n{toctree}")
    for name, drawn in recipes.diagrams().items():
        _write(docs / f"pictures/recipes/{name}.svg", sequence.draw(drawn))
    _write(docs / "architecture/recipes.md", recipes.page("../pictures/recipes"))
    for name, picture in plots.pictures((ROOT / "docs/performance.md").read_text()).items():
        _write(docs / f"pictures/plots/{name}.svg", picture)


def pages() -> list[Path]:
    """The Markdown pages of the repository that are part of the site."""
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "deploy").rglob("*.md")),
    ]


def _page(page: Path, target: Path) -> str:
    text = page.read_text()
    if page == ROOT / "docs/README.md":
        text += "\n" + contents.toctrees(text)
    if page == ROOT / "docs/performance.md":
        text = plots.with_plots(text, "pictures/plots")
    text = _ANCHOR.sub(r"(\1)=\n", text)
    text = MERMAID.sub(lambda found: _drawn(found[1], page, target), text)
    return _LINK.sub(lambda found: _link(found, page, target), text)


def _drawn(mermaid: str, page: Path, target: Path) -> str:
    """A picture in the place of a Mermaid block, which a browser could draw only with a program from the network."""
    number = len(list((target / "docs/pictures/drawn").glob(f"{page.stem}-*.svg"))) + 1
    picture = target / f"docs/pictures/drawn/{page.stem}-{number}.svg"
    drawn = sequence.from_mermaid(mermaid, page.stem)
    _write(picture, sequence.draw(drawn))
    up = "/".join([".."] * (len(page.relative_to(ROOT).parts) - 2)) or "."
    return f"![{drawn.description}]({up}/pictures/drawn/{picture.name})"


def _link(found: re.Match[str], page: Path, target: Path) -> str:
    """A link as the site has it: files beside the pages come along, folders are only named."""
    bang, text, to = found.groups()
    there = (page.parent / to.partition("#")[0]).resolve()
    if ":" in to or to.startswith("#") or there.suffix == ".md" or not there.is_relative_to(ROOT):
        return found[0]
    if there.is_file():
        copy = target / there.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(there, copy)
        return found[0]
    return f"{bang}{text}" if there.is_dir() else found[0]


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)

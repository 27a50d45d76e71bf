"""What the site of the documentation is made of, without making it: pictures, the API's reference, plots, the order of pages."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from causeway.api import routes, versions
from causeway.operations.recipes import RECIPES
from docs.site import api, contents, plots, recipes, sequence, stage

README = (stage.ROOT / "docs/README.md").read_text()


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_has_a_picture_with_its_steps_and_its_pivot(name: str) -> None:
    recipe, drawn = RECIPES[name], recipes.diagram(RECIPES[name])
    rows = drawn.rows
    headings = [row.text.split()[1] for row in rows if isinstance(row, sequence.Heading)]
    assert headings == [step.name for step in recipe.steps]
    above, pivots = "", []
    for row in rows:
        if isinstance(row, sequence.Rule):
            pivots.append(above)
        if isinstance(row, sequence.Heading):
            above = row.text.split()[1]
    assert sorted(pivots) == sorted(filter(None, (recipe.pivot, recipe.other_pivot)))
    picture = ElementTree.fromstring(sequence.draw(drawn))
    shown = " ".join(text for text in picture.itertext() if text)
    assert all(step.name in shown for step in recipe.steps)


def test_hosts_are_where_the_steps_say() -> None:
    lanes = {step.name: recipes.lane(step) for step in RECIPES["resize"].steps}
    assert lanes["ReserveTarget"] == lanes["FinishAtTarget"] == recipes.TARGET
    assert lanes["HandOver"] == recipes.SOURCE
    assert lanes["SwitchInstanceMapping"] == recipes.RECORDS
    assert recipes.lane(RECIPES["rescue"].steps[0]) == recipes.HOST


def test_nothing_is_undone_below_the_pivot() -> None:
    for recipe in RECIPES.values():
        rows = recipes.diagram(recipe).rows
        # Behind the last one: a recipe may have one for each kind of its sagas.
        pivot = max((place for place, row in enumerate(rows) if isinstance(row, sequence.Rule)), default=len(rows))
        assert not any(isinstance(row, sequence.Message) and row.dashed for row in rows[pivot:])


def test_what_steps_read_and_write_stands_below_the_picture() -> None:
    text = recipes.page("pictures")
    assert "| Check" in text and text.count("| step | reads | writes |") == len(RECIPES)
    assert "Known at the start: `backup_type`, `image_id`, `rotation`." in text
    assert "and all that `resize` wrote." in text
    assert "| UploadDisk | `image_id` |  |" in text
    assert "(`attachments`), (`guest`)" in text


def test_pages_that_others_link_to_are_part_of_the_site() -> None:
    pages = stage.pages()
    linked = {
        (page.parent / to).resolve()
        for page in pages
        for to in re.findall(r"\]\(([^():#\s]+\.md)[#)]", page.read_text())
    }
    assert linked <= set(pages)


def test_mermaid_diagrams_of_the_pages_can_be_drawn() -> None:
    blocks = [block for page in stage.pages() for block in stage.MERMAID.findall(page.read_text())]
    assert blocks
    for block in blocks:
        ElementTree.fromstring(sequence.draw(sequence.from_mermaid(block, "drawn")))


def test_what_is_no_sequence_diagram_is_refused() -> None:
    with pytest.raises(ValueError, match="A ==> B"):
        sequence.from_mermaid("sequenceDiagram\nA ==> B", "drawn")


def test_every_page_stands_in_the_table_of_contents() -> None:
    listed = {
        (stage.ROOT / "docs" / f"{page}.md").resolve() for pages in contents.parts(README).values() for page in pages
    }
    assert set(stage.pages()) - {stage.ROOT / "docs/README.md"} == listed
    assert "```{toctree}" in contents.toctrees(README)


def test_the_reference_of_the_api_has_every_operation() -> None:
    pages = api.pages()
    for route in routes.ROUTES:
        action = f" ({route.action})" if route.action else ""
        wanted = f"## {route.method} {route.path}{action}\n"
        gone = f"| `{route.path}` |" in pages[api.REMOVED]
        assert gone or any(wanted in page for page in pages.values()), wanted


def test_the_reference_of_the_api_says_what_each_microversion_changed() -> None:
    text = api.index(["servers"])
    assert "| 2.1 |" in text and f"| {versions.MAX} |" in text
    assert "| 2.17 | action trigger_crash_dump |" in text


def test_fields_are_shown_with_their_microversions() -> None:
    keypairs = api.pages()["os-keypairs"]
    assert "| `keypair.name` | string (at least 1, at most 255) |  |" in keypairs
    assert "| `keypair.type` | string: `ssh`, `x509` | from 2.2 |" in keypairs
    assert "| `keypair.private_key` | string | 2.2 to 2.91 |" in keypairs


@pytest.mark.parametrize("plot", plots.PLOTS, ids=lambda plot: plot.name)
def test_every_plot_finds_its_table(plot: plots.Plot) -> None:
    performance = (stage.ROOT / "docs/performance.md").read_text()
    found = plots.figures(plot, performance)
    assert len(found) >= 2
    assert all(value > 0 for _, values in found for value in values)
    assert f"## {plot.section}\n\n![" in plots.with_plots(performance, "pictures")


def test_a_table_that_is_gone_is_named() -> None:
    with pytest.raises(ValueError, match="there is no table"):
        plots.figures(plots.PLOTS[0], "# Performance\n")

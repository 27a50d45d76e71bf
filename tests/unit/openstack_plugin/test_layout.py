"""Whatever the width, a table has all of its text, and ids, hosts and steps in one piece."""

from __future__ import annotations

import argparse
import io
import uuid as uuids

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.openstack_plugin.columns import Worded
from causeway.openstack_plugin.layout import Column, arrange
from causeway.openstack_plugin.whole_tables import WholeTable

WHY = (
    "No valid host was found: ComputeFilter refused 12 hosts of cell1, whose services have not reported for 65 seconds."
)
TITLES = ["ID", "Server", "Recipe", "State", "Step", "Progress", "Error"]
ROWS = [
    (
        str(uuids.uuid4()),
        str(uuids.uuid4()),
        "resize",
        "running",
        "CopyDisksWhileItRuns",
        Worded({"bytes_done": number}, lambda _moved: "429,916,160 of 1,073,741,824 (40 %), round 2, about 7 s left"),
        WHY if number < 3 else "",
    )
    for number in range(4)
]


def options(width: int) -> argparse.Namespace:
    return argparse.Namespace(max_width=width, fit_width=False, print_empty=False)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_openstack_client_breaks_no_id_and_says_a_shared_reason_once(width: int) -> None:
    stream = io.StringIO()
    WholeTable(("Progress",), ("Error",)).emit_list(TITLES, ROWS, stream, options(width))
    text = stream.getvalue()
    for row in ROWS:
        for cell in row[:5]:
            assert cell in text
    assert text.count(WHY) == 1
    assert "[1]" in text
    table = text[: text.index(WHY)].splitlines()[:-1]
    assert max(map(len, table)) <= width
    assert text.count("round 2") == 4


@given(
    st.lists(
        st.tuples(st.text("ab", max_size=40), st.text("cd ", max_size=60), st.text("ef ", max_size=60)), min_size=1
    ),
    st.integers(20, 200),
)
def test_a_layout_fits_its_width_and_loses_no_text(rows: list[tuple[str, str, str]], width: int) -> None:
    ids, sentences, reasons = ([row[number] for row in rows] for number in range(3))
    columns = [Column("Id", ids), Column("Text", sentences, is_folded=True), Column("Why", reasons, is_reason=True)]
    found = arrange(columns, width)
    if found.widths is not None:
        assert sum(found.widths) + 3 * len(columns) + 1 <= width
        assert found.widths[0] >= max(map(len, ids))
    assert found.columns[0].cells == ids
    notes = {line.partition(" ")[0]: line.partition(" ")[2] for line in found.under}
    assert [notes.get(cell, cell) for cell in found.columns[2].cells] == reasons

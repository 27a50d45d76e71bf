"""Every code of a finding stands in docs/adopting.md with what to do, and has a test that finds it."""

from __future__ import annotations

from pathlib import Path

from causeway.adopt.check import CODES

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/adopting.md").read_text()
TESTS = "".join(file.read_text() for file in Path(__file__).parent.glob("*.py"))


def test_the_table_of_codes_in_the_document_is_that_of_the_code() -> None:
    lines = ["| code | of | verdict | found | what to do |", "|---|---|---|---|---|"]
    for name, code in CODES.items():
        to_do = code.to_do or "See the finding."
        lines.append(f"| `{name}` | {code.kind.value} | {code.verdict.value} | {code.means} | {to_do} |")
    table = "\n".join(lines)
    assert f"\n{table}\n" in PAGE, f"docs/adopting.md should have:\n{table}"


def test_a_test_finds_each_code() -> None:
    assert [code for code in CODES if f'"{code}"' not in TESTS] == []


def test_what_to_do_is_a_sentence_and_fits_into_a_table() -> None:
    for _kind, _verdict, means, to_do in CODES.values():
        assert "|" not in means + to_do
        assert not to_do or to_do.endswith((".", "...`."))
        assert not means.endswith(".")

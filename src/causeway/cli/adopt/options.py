"""``causeway adopt options``: what the options of a nova.conf mean."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from causeway.adopt import Judgement, Verdict, judge
from causeway.cli.adopt.group import adopt
from causeway.cli.adopt.nova_config import nova_config_option
from causeway.errors import Misconfigured

# In the order of their urgency.
_TITLES = {
    Verdict.REFUSED: "Refused: no role starts with these values",
    Verdict.DIFFERS: "Differs from Nova",
    Verdict.NO_EFFECT: "Without effect",
    Verdict.SAME: "Same meaning",
}


@adopt.command()
@nova_config_option(
    "A nova.conf; may be given several times, for a role that reads several files: later ones win.", name="files"
)
@click.option("--json", "as_json", is_flag=True, help="JSON instead of text.")
def options(files: tuple[Path, ...], as_json: bool) -> None:
    """Say of each option of a nova.conf what it means for Causeway: the same, something else, nothing, or that it is refused.

    Give the files of one role at a time. Nothing is asked and nothing is changed; no value is shown. Exit status 1 if an
    option is refused, or a file can't be read.
    """
    try:
        judgement = judge(files)
    except Misconfigured as failure:
        raise click.ClickException(failure.message) from failure
    click.echo(_as_json(judgement) if as_json else _as_text(judgement))
    if judgement.is_refused:
        sys.exit(1)


def _as_json(judgement: Judgement) -> str:
    found = [
        {"group": one.group, "option": one.name, "verdict": one.verdict.value, "note": one.note}
        for one in judgement.options
    ]
    to_add = [{"group": one.group, "option": one.name, "note": one.note} for one in judgement.to_add]
    return json.dumps({"options": found, "to_add": to_add}, indent=2)


def _as_text(judgement: Judgement) -> str:
    lines: list[str] = []
    for verdict, title in _TITLES.items():
        found = [one for one in judgement.options if one.verdict is verdict]
        if found:
            lines += [f"{title} ({len(found)}):", *(f"  {one}{': ' * bool(one.note)}{one.note}" for one in found), ""]
    if judgement.to_add:
        lines += ["To be added, for a compute:"]
        lines += [f"  [{one.group}] {one.name}: {one.note}" for one in judgement.to_add]
    return "\n".join(lines).rstrip()

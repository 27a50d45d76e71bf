"""The report of a check, in all its forms. Names in it are the tenants': no form believes them."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from causeway.adopt.check import CODES, Finding, Kind, Report, Subject, Verdict
from causeway.cli.adopt.shown import printable

_TEMPLATES = {"html": "check.html.j2", "markdown": "check.md.j2"}
#: how many findings of one code a form shows before it only counts them
_SHOWN = {"text": 10, "html": 1000, "markdown": 1000}
_SEEN = "seen on hosts, beside what is recorded"
_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~-])")


@dataclass(frozen=True)
class Group:
    """The findings of one code. ``shown``: the first of them."""

    code: str
    means: str
    to_do: str
    count: int
    shown: Sequence[Finding]

    @property
    def more(self) -> int:
        return self.count - len(self.shown)


def groups(report: Report, verdict: Verdict, limit: int) -> list[Group]:
    return [
        Group(code, CODES[code].means if code in CODES else _SEEN, listed[0].to_do, len(listed), listed[:limit])
        for code, listed in report.by_code(verdict).items()
    ]


def as_text(report: Report, kind: str) -> str:
    match kind:
        case "json":
            return json.dumps(as_json(report), indent=2)
        case "html" | "markdown":
            return _rendered(report, kind)
    return _plain(report)


def as_json(report: Report) -> dict[str, Any]:
    worst = report.verdicts()
    return {
        "at": report.at.isoformat(),
        "blocked": report.is_blocked,
        "facts": dict(report.facts),
        "counts": {
            kind.value: {verdict.value: counted[verdict] for verdict in Verdict}
            for kind, counted in report.counts().items()
        },
        "findings": [
            {
                **_subject(each.subject),
                "verdict": each.verdict.value,
                "code": each.code,
                "what": each.what,
                "to_do": each.to_do,
            }
            for each in report.findings
        ],
        "as_it_is": [_subject(subject) for key, subject in report.judged.items() if key not in worst],
        "not_checked": [{"what": each.what, "why": each.why} for each in report.not_checked],
    }


def _subject(subject: Subject) -> dict[str, str]:
    return {"kind": subject.kind.value, "id": subject.id, "name": subject.name}


def summary(report: Report) -> str:
    """How many servers and hosts have which verdict."""
    counts = report.counts()
    sentences = []
    for kind in (Kind.SERVER, Kind.HOST, Kind.OPTION):
        counted = counts.get(kind)
        if counted:
            parts = [f"{counted[verdict]} {_WORDS[verdict]}" for verdict in Verdict if counted[verdict]]
            sentences.append(f"{counted.total()} {kind.value}{'s' * (counted.total() != 1)}: {', '.join(parts)}.")
    return " ".join(sentences) or "Nothing was found to check."


_WORDS = {Verdict.AS_IT_IS: "as it is", Verdict.DIFFERS: "with a difference", Verdict.BLOCKS: "blocked"}
_TITLES = {Verdict.BLOCKS: "Blocks", Verdict.DIFFERS: "Differs"}


def _plain(report: Report) -> str:
    lines = [summary(report), ""]
    for verdict, title in _TITLES.items():
        for group in groups(report, verdict, _SHOWN["text"]):
            lines.append(f"{title}: {group.code} ({group.count}): {group.means}")
            lines += [f"  {named(each.subject)}: {printable(each.what)}" for each in group.shown]
            lines += [f"  ... and {group.more} more: --format json lists all"] if group.more else []
            lines += [f"  -> {group.to_do}"] if group.to_do else []
            lines.append("")
    if report.not_checked:
        lines.append("Not checked:")
        lines += [f"  {each.what}: {printable(each.why)}" for each in report.not_checked]
    return "\n".join(lines).rstrip()


def named(subject: Subject) -> str:
    """A subject for a terminal."""
    return printable(f"{subject.name} ({subject.id})" if subject.name else subject.id)


def markdown(text: object) -> str:
    """Text that is shown as it is, in a cell of a Markdown table."""
    return _SPECIAL.sub(r"\\\1", html.escape(printable(str(text or "")), quote=False))


def _rendered(report: Report, kind: str) -> str:
    # Only here: the other forms need no such library.
    from causeway.cli import templates

    environment = templates.environment("causeway.cli.adopt")
    environment.filters |= {"cell": markdown, "printable": printable}
    worst = report.verdicts()
    return environment.get_template(_TEMPLATES[kind]).render(
        report=report,
        summary=summary(report),
        counts=report.counts(),
        verdicts=list(Verdict),
        sections=[(title, groups(report, verdict, _SHOWN[kind])) for verdict, title in _TITLES.items()],
        hosts=_hosts(report, worst),
    )


def _hosts(report: Report, worst: dict[tuple[Kind, str], Verdict]) -> list[tuple[Subject, Verdict]]:
    return [
        (subject, worst.get(key, Verdict.AS_IT_IS))
        for key, subject in report.judged.items()
        if subject.kind is Kind.HOST
    ]


__all__ = ["Group", "as_json", "as_text", "groups", "markdown", "named", "summary"]

"""All that one check found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from causeway.adopt.check.findings import Finding, Kind, Subject, Verdict

_ORDER = {Verdict.BLOCKS: 0, Verdict.DIFFERS: 1, Verdict.AS_IT_IS: 2}


@dataclass(frozen=True)
class NotChecked:
    """``what`` could not be compared, and ``why``."""

    what: str
    why: str


@dataclass
class Report:
    """``facts``: what the check read, as pairs of words. ``judged``: every server, host and option that it looked at."""

    at: datetime
    facts: list[tuple[str, str]] = field(default_factory=list)
    judged: dict[tuple[Kind, str], Subject] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    not_checked: list[NotChecked] = field(default_factory=list)

    def judge(self, subject: Subject, findings: Iterable[Finding] = ()) -> None:
        self.judged.setdefault(subject.key, subject)
        self.findings.extend(findings)

    def add(self, finding: Finding) -> None:
        self.judge(finding.subject, [finding])

    @property
    def is_blocked(self) -> bool:
        return any(finding.verdict is Verdict.BLOCKS for finding in self.findings)

    def verdicts(self) -> dict[tuple[Kind, str], Verdict]:
        """The worst verdict on each subject with findings."""
        worst: dict[tuple[Kind, str], Verdict] = {}
        for finding in self.findings:
            key = finding.subject.key
            worst[key] = min(worst.get(key, Verdict.AS_IT_IS), finding.verdict, key=_ORDER.__getitem__)
        return worst

    def counts(self) -> dict[Kind, Counter[Verdict]]:
        """How many of each kind have which verdict, as their worst."""
        worst = self.verdicts()
        counted: dict[Kind, Counter[Verdict]] = {kind: Counter() for kind in Kind}
        for key in self.judged:
            counted[key[0]][worst.get(key, Verdict.AS_IT_IS)] += 1
        return {kind: counter for kind, counter in counted.items() if counter}

    def by_code(self, verdict: Verdict) -> dict[str, list[Finding]]:
        """The findings with this verdict, by code, in the order in which they were found first."""
        grouped: dict[str, list[Finding]] = {}
        for finding in self.findings:
            if finding.verdict is verdict:
                grouped.setdefault(finding.code, []).append(finding)
        return grouped


__all__ = ["NotChecked", "Report"]

"""Why a host was chosen, and why the others were not.

`explain` answers every host. What is stored with a move does not grow with the cloud: the best hosts, and how many others each
filter refused (`Explanation.in_short`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

# How many of the best hosts a short explanation has, and how many names a sentence has for one reason.
BEST = 10
NAMED = 20


@dataclass
class Refusal:
    """Why a filter refuses a host.

    ``one`` and ``many`` complete "1 host ..." and "4 hosts ..." and name no host: users read them.
    ``values``: what was compared, for administrators. ``needs`` and ``free``: for what a host has too little of.
    """

    one: str
    many: str
    values: dict[str, str] = field(default_factory=dict)
    needs: int | None = None
    free: int | None = None
    filter: str = ""

    @property
    def reason(self) -> str:
        """The whole reason with the values compared."""
        compared = ", ".join(f"{name}: {value}" for name, value in self.values.items())
        amounts = "" if self.needs is None or self.free is None else f" (needs {self.needs}, {self.free} free)"
        return self.one + amounts + (f" [{compared}]" if compared else "")


@dataclass
class HostVerdict:
    """The verdict on one host. ``weights``: multiplied score per weigher; ``total`` their sum."""

    host: str
    hypervisor_hostname: str
    node_uuid: str
    cell_uuid: str
    cell_name: str
    refusal: Refusal | None = None
    weights: dict[str, float] = field(default_factory=dict)
    total: float = 0.0
    # Whether the host was chosen.
    selected: bool = False


@dataclass
class RefusedHosts:
    """How many hosts were refused in the same words. ``free``: the most that one of them has; ``differs``: others have less."""

    filter: str
    one: str
    many: str
    hosts: int = 0
    needs: int | None = None
    free: int | None = None
    differs: bool = False

    def count(self, refusal: Refusal, hosts: int = 1) -> None:
        self.hosts += hosts
        self._note_free(refusal.needs, refusal.free, differs=False)

    def add(self, others: RefusedHosts) -> None:
        self.hosts += others.hosts
        self._note_free(others.needs, others.free, others.differs)

    def _note_free(self, needs: int | None, free: int | None, differs: bool) -> None:
        if self.needs is None:
            self.needs = needs
        if free is not None:
            self.differs = self.differs or differs or self.free not in (None, free)
            self.free = free if self.free is None else max(self.free, free)

    @property
    def phrase(self) -> str:
        """ "4 are full on VCPU (needs 4, at most 2 free)"."""
        amounts = ""
        if self.needs is not None and self.free is not None:
            amounts = f" (needs {self.needs}, {'at most ' if self.differs else ''}{self.free} free)"
        return f"{self.hosts} {self.one if self.hosts == 1 else self.many}{amounts}"


@dataclass
class Explanation:
    """Every host that was looked at, best first, the refused ones last; or, in short, only some of them."""

    hosts: list[HostVerdict] = field(default_factory=list)
    # The reason, if it concerns no single host ("no host is in availability zone x").
    note: str = ""
    # The names of cells that did not answer, so that their hosts are unknown.
    silent_cells: list[str] = field(default_factory=list)
    # Of hosts that are not among ``hosts``: how many fit, and how many were refused.
    others_fit: int = 0
    others_refused: list[RefusedHosts] = field(default_factory=list)

    def in_short(self) -> Explanation:
        """Returns a short form: the chosen host and those with the best weights in full, the numbers of all others."""
        ranked = sorted((one for one in self.hosts if one.weights), key=lambda one: -one.total)[:BEST]
        kept = {one.node_uuid for one in ranked} | {one.node_uuid for one in self.hosts if one.selected}
        others = [one for one in self.hosts if one.node_uuid not in kept]
        refused = [one.refusal for one in others if one.refusal is not None]
        return Explanation(
            hosts=[one for one in self.hosts if one.node_uuid in kept],
            note=self.note,
            silent_cells=self.silent_cells,
            others_fit=self.others_fit + len(others) - len(refused),
            others_refused=list(_together(refused, self.others_refused).values()),
        )

    def summary(self, *, with_hosts: bool = False) -> str:
        """One sentence: "7 hosts: 4 lack the aggregate property gen=2, 1 is down". Host names are for administrators."""
        refusals = [one.refusal for one in self.hosts if one.refusal is not None]
        refused = _together(refusals, self.others_refused)
        names: dict[str, list[str]] = {}
        if with_hosts:
            for one in self.hosts:
                if one.refusal is not None:
                    names.setdefault(one.refusal.many, []).append(one.host)
        parts = [
            group.phrase + _names(names.get(group.many, []), group.hosts)
            for group in sorted(refused.values(), key=lambda group: group.hosts, reverse=True)
        ]
        fitting = len(self.hosts) - len(refusals) + self.others_fit
        if fitting:
            parts.append(f"{fitting} {'fits' if fitting == 1 else 'fit'}")
        count = fitting + sum(group.hosts for group in refused.values())
        hosts = f"{count} {'host' if count == 1 else 'hosts'}"
        counted = f"{hosts}: {', '.join(parts)}" if parts else ""
        said = "; ".join(part for part in (self.note, counted) if part) or "there are no hosts"
        return said + self._silent(with_names=with_hosts)

    def _silent(self, *, with_names: bool) -> str:
        count = len(self.silent_cells)
        if not count:
            return ""
        names = f" ({', '.join(self.silent_cells)})" if with_names else ""
        return f"; {count} {'cell does' if count == 1 else 'cells do'} not answer{names}"


def _together(refusals: Iterable[Refusal], counted: Iterable[RefusedHosts]) -> dict[str, RefusedHosts]:
    """Counts refusals with the same words together. Returns the words for several hosts -> the count."""
    groups: dict[str, RefusedHosts] = {}
    for refusal in refusals:
        known = groups.get(refusal.many)
        if known is None:
            known = groups[refusal.many] = RefusedHosts(refusal.filter, refusal.one, refusal.many)
        known.count(refusal)
    for others in counted:
        known = groups.get(others.many)
        if known is None:
            known = groups[others.many] = RefusedHosts(others.filter, others.one, others.many)
        known.add(others)
    return groups


def _names(names: list[str], hosts: int) -> str:
    """The names of the first hosts: an error in a large cloud must stay readable, too."""
    if not names:
        return ""
    named = names[:NAMED]
    more = f" and {hosts - len(named)} more" if hosts > len(named) else ""
    return f" ({', '.join(named)}{more})"

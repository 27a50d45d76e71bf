"""Why a host was chosen, and why the others were not: kept with every answer of the scheduler."""

from __future__ import annotations

from dataclasses import dataclass, field


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
        return self.one + _amounts([self]) + (f" [{compared}]" if compared else "")


@dataclass
class HostVerdict:
    """What became of one host. ``weights``: multiplied score per weigher; ``total`` their sum."""

    host: str
    hypervisor_hostname: str
    node_uuid: str
    cell_uuid: str
    cell_name: str
    refusal: Refusal | None = None
    weights: dict[str, float] = field(default_factory=dict)
    total: float = 0.0
    # Whether the host was chosen, and what the claim said if it was tried in vain.
    selected: bool = False


@dataclass
class Explanation:
    """Every host that was looked at, best first, the refused ones last."""

    hosts: list[HostVerdict] = field(default_factory=list)
    # What there is to say when no single host is to blame ("no host is in availability zone x").
    note: str = ""
    # Names of cells that did not answer: nothing is known of their hosts.
    silent_cells: list[str] = field(default_factory=list)

    def summary(self, *, with_hosts: bool = False) -> str:
        """One sentence: "7 hosts: 4 lack the aggregate property gen=2, 1 is down". Host names are for administrators."""
        refused = [verdict for verdict in self.hosts if verdict.refusal is not None]
        groups: dict[str, list[HostVerdict]] = {}
        for verdict in refused:
            assert verdict.refusal is not None
            groups.setdefault(verdict.refusal.many, []).append(verdict)
        parts = []
        for verdicts in sorted(groups.values(), key=len, reverse=True):
            refusals = [verdict.refusal for verdict in verdicts if verdict.refusal is not None]
            phrase = refusals[0].one if len(verdicts) == 1 else refusals[0].many
            names = " (" + ", ".join(verdict.host for verdict in verdicts) + ")" if with_hosts else ""
            parts.append(f"{len(verdicts)} {phrase}{_amounts(refusals)}{names}")
        fitting = len(self.hosts) - len(refused)
        if fitting:
            parts.append(f"{fitting} {'fits' if fitting == 1 else 'fit'}")
        hosts = f"{len(self.hosts)} {'host' if len(self.hosts) == 1 else 'hosts'}"
        counted = f"{hosts}: {', '.join(parts)}" if parts else ""
        said = "; ".join(part for part in (self.note, counted) if part) or "there are no hosts"
        return said + self._silent(with_names=with_hosts)

    def _silent(self, *, with_names: bool) -> str:
        count = len(self.silent_cells)
        if not count:
            return ""
        names = f" ({', '.join(self.silent_cells)})" if with_names else ""
        return f"; {count} {'cell does' if count == 1 else 'cells do'} not answer{names}"


def _amounts(refusals: list[Refusal]) -> str:
    needs = refusals[0].needs
    free = [refusal.free for refusal in refusals if refusal.free is not None]
    if needs is None or not free:
        return ""
    bound = "at most " if len(set(free)) > 1 else ""
    return f" (needs {needs}, {bound}{max(free)} free)"

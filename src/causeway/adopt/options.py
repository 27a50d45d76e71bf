"""What the options of a nova.conf mean for Causeway: each of them has exactly one verdict.

Values are never part of an answer: they may be passwords, and the operator has the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from oslo_config import cfg

from causeway.adopt import differing, nova_values
from causeway.conf import Invalid, names_read, nova_options, of_library, paths, read_unchecked
from causeway.scheduler import filters, weighers


class Verdict(StrEnum):
    """What an option means for Causeway."""

    SAME = "same"
    DIFFERS = "differs"
    NO_EFFECT = "no effect"
    REFUSED = "refused"


@dataclass(frozen=True)
class Judged:
    """An option in the files. ``note``: how it differs, what matters of it, or what to do; may be empty for no effect."""

    group: str
    name: str
    verdict: Verdict
    note: str = ""

    def __str__(self) -> str:
        return f"[{self.group}] {self.name}"


@dataclass(frozen=True)
class ToAdd:
    """An option that is not in the files and that Causeway needs."""

    group: str
    name: str
    note: str


@dataclass
class Judgement:
    options: list[Judged] = field(default_factory=list)
    to_add: list[ToAdd] = field(default_factory=list)

    @property
    def is_refused(self) -> bool:
        return any(one.verdict is Verdict.REFUSED for one in self.options)


def judge(files: Iterable[Path]) -> Judgement:
    """Judges the options in these files, of which later ones win. Raises Misconfigured if one can't be read."""
    listed = list(files)
    given: dict[tuple[str, str], str] = {}
    for path in listed:
        for group, name in _options_in(path):
            given.setdefault((group, _plain(name)), name)
    conf, invalid = read_unchecked(listed)
    refused = {(each.group, _plain(each.option)): each.reason for each in _refusals(conf, invalid)}
    known = names_read(conf)
    judgement = Judgement()
    for (group, name), written in sorted(given.items()):
        place = known.get((group, name), (group, name))
        verdict, note = _verdict(place, is_read=(group, name) in known, refused=refused)
        judgement.options.append(Judged(group, written, verdict, note))
    places = {known.get(each, each) for each in given}
    if _is_compute(places):
        missing = [each for each in differing.OF_COMPUTES if each not in places]
        judgement.to_add = [ToAdd(*each, differing.OF_COMPUTES[each]) for each in missing]
    return judgement


def _verdict(place: tuple[str, str], *, is_read: bool, refused: Mapping[tuple[str, str], str]) -> tuple[Verdict, str]:
    """``place``: group and option under the names that they have now."""
    group, name = place
    if place in refused:
        return Verdict.REFUSED, " ".join(filter(None, (refused[place], differing.INSTEAD.get(place, ""))))
    if is_read:
        note = differing.DIFFERS.get(place, "")
        return (Verdict.DIFFERS if note else Verdict.SAME), note
    if name in nova_options.NAMES.get(group, ()) or group in nova_options.GROUPS:
        return Verdict.NO_EFFECT, differing.MATTERS.get(place, differing.MATTERING_GROUPS.get(group, ""))
    if group in differing.UNREAD_GROUPS:
        return Verdict.NO_EFFECT, differing.UNREAD_GROUPS[group]
    if of_library(group):
        return Verdict.SAME, ""
    return (
        Verdict.NO_EFFECT,
        "Neither Causeway nor a present Nova reads it: it is misspelt, or an old name.",
    )


def _refusals(conf: cfg.ConfigOpts, invalid: list[Invalid]) -> Iterator[Invalid]:
    """The options with values with which a role would not start. ``invalid``: those that any role finds when it reads them."""
    yield from invalid
    wrong = {(each.group, each.option) for each in invalid}
    for name, available in (
        ("enabled_filters", filters.AVAILABLE.keys()),
        ("weight_classes", {weighers.ALL, *weighers.AVAILABLE}),
    ):
        if ("filter_scheduler", name) not in wrong and not set(conf.filter_scheduler[name]) <= available:
            yield Invalid("filter_scheduler", name, f"Accepted: {', '.join(sorted(available))}.")
    for option in paths.PATHS:
        if option.named is paths.Named.LASTING and (option.group, option.name) not in wrong:
            value = conf[option.name] if option.group == "DEFAULT" else conf[option.group][option.name]
            if value and paths.is_relative(value):
                yield Invalid(option.group, option.name, "It is a relative path.")


def _is_compute(places: Iterable[tuple[str, str]]) -> bool:
    return any(place == ("DEFAULT", "compute_driver") or place[0] == "libvirt" for place in places)


def _plain(name: str) -> str:
    return name.replace("-", "_")


def _options_in(path: Path) -> list[tuple[str, str]]:
    return [(group, name) for group, options in nova_values.sections(path).items() for name in options]


__all__ = ["Judged", "Judgement", "ToAdd", "Verdict", "judge"]

"""What the files of Nova's roles say: options, and rules of the policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg
from oslo_policy import opts as policy_opts

from causeway import errors, policy, policy_files
from causeway.adopt import Judged, judge
from causeway.adopt import Verdict as Meaning
from causeway.adopt.check.codes import found
from causeway.adopt.check.findings import Finding, Kind, Subject
from causeway.conf import new_config

Files = tuple[Path, ...]
# How many hosts are named before they are only counted.
_NAMED = 3
_CODES = {
    Meaning.DIFFERS: "option_differs",
    Meaning.NO_EFFECT: "option_without_effect",
    Meaning.REFUSED: "option_refused",
}
#: what stands for all hosts that are not named
ALL_OTHERS = "*"


@dataclass(frozen=True)
class ComputeFiles:
    """Files of computes, by host; ``*``: of all others."""

    by_host: Mapping[str, Files]

    def of(self, host: str) -> Files | None:
        return self.by_host.get(host, self.by_host.get(ALL_OTHERS))

    def roles(self) -> dict[Files, str]:
        """Files -> the hosts that have them, in words."""
        hosts: dict[Files, list[str]] = {}
        for host, files in self.by_host.items():
            hosts.setdefault(files, []).append("all other hosts" if host == ALL_OTHERS else host)
        return {files: _named(sorted(names)) for files, names in hosts.items()}


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def of_options(files: Iterable[Path], role: str) -> Iterator[tuple[Subject, list[Finding]]]:
    """Each option in the files of a role, with what is found of it. Raises Misconfigured if one can't be read."""
    judgement = judge(files)
    for option in judgement.options:
        subject = Subject(Kind.OPTION, f"{option} of {role}")
        yield subject, _of_option(subject, option)
    for missing in judgement.to_add:
        subject = Subject(Kind.OPTION, f"[{missing.group}] {missing.name} of {role}")
        yield subject, [found(subject, "option_to_add", missing.note)]


def _of_option(subject: Subject, option: Judged) -> list[Finding]:
    is_same = option.verdict is Meaning.SAME or (option.verdict is Meaning.NO_EFFECT and not option.note)
    return [] if is_same else [found(subject, _CODES[option.verdict], option.note)]


def of_policy(path: Path) -> list[Finding]:
    """The rules in a policy file of Nova's that do nothing here; or what is wrong with the file."""
    conf = new_config()
    policy_opts.set_defaults(conf)
    # Given to set_defaults, it would be the default of every other configuration of this process too.
    conf.set_override("policy_file", str(path), group="oslo_policy")
    try:
        policy_files.check(conf)
    except errors.Misconfigured as failure:
        return [found(Subject(Kind.RULE, str(path)), "rules_broken", failure.message)]
    return [
        found(Subject(Kind.RULE, rule.partition(" in ")[0]), "rule_unknown", f"{rule}: nothing asks it.")
        for rule in policy.unknown_rules(conf)
    ]


def written(files: Iterable[Path]) -> dict[tuple[str, str], str]:
    """The options in files as they are written, also those that Causeway does not have or accept; later files win."""
    values: dict[tuple[str, str], str] = {}
    for path in files:
        sections: dict[str, dict[str, list[str]]] = {}
        try:
            cfg.ConfigParser(str(path), sections).parse()
        except (cfg.ParseError, OSError, UnicodeDecodeError):
            # The text of the error has a line of the file.
            raise errors.Misconfigured(f"{path} can't be read, or it is no nova.conf.") from None
        for group, options in sections.items():
            values |= {(group, name.replace("-", "_")): lines[-1].strip() for name, lines in options.items()}
    return values


def images_type(options: Mapping[tuple[str, str], str]) -> str:
    """What a compute with these options keeps its local disks as."""
    kind = options.get(("libvirt", "images_type"), "default").lower()
    if kind != "default":
        return kind
    has_overlays = options.get(("DEFAULT", "use_cow_images"), "true").lower() not in (
        "false",
        "no",
        "off",
        "0",
        "f",
        "n",
    )
    return "qcow2" if has_overlays else "flat"


__all__ = ["ALL_OTHERS", "ComputeFiles", "Files", "images_type", "of_options", "of_policy", "written"]

"""Checks that options have valid values, and that every option in the files has an effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from keystoneauth1 import loading
from oslo_config import cfg, types
from oslo_log import _options as log_opts
from oslo_messaging import opts as messaging_opts
from oslo_policy import opts as policy_opts

from causeway.conf import nova_options, tokens
from causeway.model.instance import name_guest

# Groups of libraries that read the same files. They are not checked here.
_OF_LIBRARIES = ("oslo_", "os_vif", "os_brick", "vif_plug", "privsep", "cors", "healthcheck", "ssl", "key_manager")


@dataclass
class Ignored:
    """Options in the files without an effect, each as ``[group] name``. ``not_here``: Nova has them, Causeway does not."""

    not_here: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.not_here or self.unknown)

    def __str__(self) -> str:
        said = []
        if self.not_here:
            said.append(f"nova.conf has them, Causeway does not: {', '.join(self.not_here)}")
        if self.unknown:
            said.append(f"unknown: {', '.join(self.unknown)}")
        return f"Options that do nothing. {'; '.join(said)}."


@dataclass(frozen=True)
class Invalid:
    """An option whose value is not accepted. ``reason``: what is accepted, or what is wrong; without the value.

    ``value_error``: what oslo.config says of the value, which may show it.
    """

    group: str
    option: str
    reason: str
    value_error: ValueError | None = None


def check_values(conf: cfg.ConfigOpts, options: Iterable[tuple[str, list[cfg.Opt]]]) -> None:
    """Raises ConfigFileValueError, which names the first option with an invalid value, and what it accepts."""
    for found in invalid_values(conf, options):
        shown = f"{_reason(found.value_error)}. " if found.value_error is not None else ""
        raise cfg.ConfigFileValueError(f"[{found.group}] {found.option}: {shown}{found.reason}") from found.value_error


def invalid_values(conf: cfg.ConfigOpts, options: Iterable[tuple[str, list[cfg.Opt]]]) -> Iterator[Invalid]:
    """The options with invalid values."""
    for group, known in options:
        values = conf if group == "DEFAULT" else conf[group]
        for option in known:
            try:
                values[option.dest]
            except ValueError as failure:
                yield Invalid(group, option.name, f"Accepted: {accepted(option)}.", failure)
            except (cfg.TemplateSubstitutionError, cfg.NoSuchOptError):
                # The value is not shown: with an unintended $ it is probably a password.
                yield Invalid(group, option.name, "what follows its $ is no option. Write $$ for a dollar sign.")


def check_names(template: str) -> None:
    """Raises ConfigFileValueError unless the template makes a different name for every server."""
    samples = ("11111111-2222-4333-8444-555555555555", "11111111-2222-4333-8444-555555555556")
    try:
        names = {name_guest(template, each, "p", "u", "h") for each in samples}
    except ValueError as failure:
        raise cfg.ConfigFileValueError(
            f"[DEFAULT] instance_name_template: {failure}. Accepted: a text with %(uuid)s, or with one %x or %d."
        ) from failure
    if len(names) < len(samples) or any("/" in name or not name.isprintable() for name in names):
        raise cfg.ConfigFileValueError(
            f"[DEFAULT] instance_name_template: {template} does not name every server differently, or has a slash or something"
            " that can't be printed. Accepted: a text with %(uuid)s, or with one %x or %d."
        )


def _reason(failure: ValueError) -> str:
    return str(failure).split(" is not valid: ", 1)[-1].rstrip(".")


def accepted(option: cfg.Opt) -> str:
    """The values that an option accepts, in words."""
    kind = option.type
    choices = getattr(kind, "choices", None)
    if choices:
        return "one of " + ", ".join(str(choice) for choice in choices)
    low, high = getattr(kind, "min", None), getattr(kind, "max", None)
    bounds = (f" from {low}" if low is not None else "") + (f" to {high}" if high is not None else "")
    if isinstance(kind, types.Integer):
        return f"a whole number{bounds}"
    if isinstance(kind, types.Float):
        return f"a number{bounds}"
    if isinstance(kind, types.Boolean):
        return "true or false"
    if isinstance(kind, types.List):
        return "values with commas between them"
    return str(option.help or "a text").rstrip(".")


def ignored(conf: cfg.ConfigOpts, files: Iterable[str | Path] | None = None, *, with_tokens: bool = True) -> Ignored:
    """Returns the options in the files of ``conf`` (or in these) that have no effect.

    ``with_tokens`` False: those by which tokens are validated are not looked at.
    """
    paths = list(files) if files is not None else [*(conf.default_config_files or []), *(conf.config_file or [])]
    if not paths:
        return Ignored()
    given = {(group, name) for path in paths for group, name in _options_in(path)}
    found = Ignored()
    known = names_read(conf, with_tokens=with_tokens)
    for group, name in sorted(given):
        plain = name.replace("-", "_")
        if of_library(group) or (group, plain) in known or (group == tokens.GROUP and not with_tokens):
            continue
        theirs = group in nova_options.GROUPS or plain in nova_options.NAMES.get(group, ())
        (found.not_here if theirs else found.unknown).append(f"[{group}] {name}")
    return found


def _options_in(path: str | Path) -> set[tuple[str, str]]:
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(str(path), sections).parse()
    return {(group, name) for group, options in sections.items() for name in options}


def of_library(group: str) -> bool:
    """Whether a library reads the group from the same files."""
    return group.startswith(_OF_LIBRARIES)


def many_valued(conf: cfg.ConfigOpts) -> set[tuple[str, str]]:
    """Group and name of the registered options that may be written several times, and then have all these values."""
    listed = [("DEFAULT", each["opt"]) for each in conf._opts.values()]
    for name, group in conf._groups.items():
        listed += [(name, each["opt"]) for each in group._opts.values()]
    return {(group_name, option.dest) for group_name, option in listed if option.multi}


def names_read(conf: cfg.ConfigOpts, *, with_tokens: bool = True) -> dict[tuple[str, str], tuple[str, str]]:
    """Group and name of the registered options and of the libraries', under all their names -> those that they have now.

    ``with_tokens``: those by which tokens are validated, too.
    """
    listed: list[tuple[str, cfg.Opt]] = [("DEFAULT", each["opt"]) for each in conf._opts.values()]
    for name, group in conf._groups.items():
        listed += [(name, each["opt"]) for each in group._opts.values()]
    libraries = (
        *(tokens.options() if with_tokens else ()),
        *log_opts.list_opts(),
        *messaging_opts.list_opts(),
        *policy_opts.list_opts(),
    )
    for group, options in libraries:
        listed += [(str(getattr(group, "name", group) or "DEFAULT"), option) for option in options]
    known: dict[tuple[str, str], tuple[str, str]] = {}
    for group_name, option in listed:
        now = (group_name, option.dest)
        known |= {now: now, (group_name, option.name.replace("-", "_")): now}
        for old in option.deprecated_opts:
            known.setdefault((old.group or group_name, str(old.name or option.dest).replace("-", "_")), now)
    # Credentials that the middleware's plug-in reads.
    credentials = [*loading.get_auth_common_conf_options(), *loading.get_auth_plugin_conf_options("password")]
    return known | {(tokens.GROUP, option.dest): (tokens.GROUP, option.dest) for option in credentials}


__all__ = [
    "Ignored",
    "Invalid",
    "accepted",
    "check_values",
    "ignored",
    "invalid_values",
    "many_valued",
    "names_read",
    "of_library",
]

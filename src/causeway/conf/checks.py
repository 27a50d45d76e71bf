"""Checks that options have valid values, and that every option in the files has an effect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from keystoneauth1 import loading
from keystonemiddleware import opts as keystonemiddleware_opts
from oslo_config import cfg, types
from oslo_log import _options as log_opts
from oslo_messaging import opts as messaging_opts
from oslo_policy import opts as policy_opts

from causeway.conf import nova_options
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


def check_values(conf: cfg.ConfigOpts, options: Iterable[tuple[str, list[cfg.Opt]]]) -> None:
    """Raises ConfigFileValueError, which names the first option with an invalid value, and what it accepts."""
    for group, known in options:
        values = conf if group == "DEFAULT" else conf[group]
        for option in known:
            try:
                values[option.dest]
            except ValueError as failure:
                raise cfg.ConfigFileValueError(
                    f"[{group}] {option.name}: {_reason(failure)}. Accepted: {accepted(option)}."
                ) from failure
            except (cfg.TemplateSubstitutionError, cfg.NoSuchOptError) as failure:
                # The value is not shown: with an unintended $ it is probably a password.
                raise cfg.ConfigFileValueError(
                    f"[{group}] {option.name}: what follows its $ is no option. Write $$ for a dollar sign."
                ) from failure


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


def ignored(conf: cfg.ConfigOpts, files: Iterable[str | Path] | None = None) -> Ignored:
    """Returns the options in the files of ``conf`` (or in these) that have no effect."""
    paths = list(files) if files is not None else [*(conf.default_config_files or []), *(conf.config_file or [])]
    if not paths:
        return Ignored()
    given = {(group, name) for path in paths for group, name in _options_in(path)}
    found = Ignored()
    known = _known(conf)
    for group, name in sorted(given):
        plain = name.replace("-", "_")
        if group.startswith(_OF_LIBRARIES) or (group, plain) in known:
            continue
        theirs = group in nova_options.GROUPS or plain in nova_options.NAMES.get(group, ())
        (found.not_here if theirs else found.unknown).append(f"[{group}] {name}")
    return found


def _options_in(path: str | Path) -> set[tuple[str, str]]:
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(str(path), sections).parse()
    return {(group, name) for group, options in sections.items() for name in options}


def _known(conf: cfg.ConfigOpts) -> set[tuple[str, str]]:
    """The registered options, under all their names, and those of the libraries."""
    listed: list[tuple[str, cfg.Opt]] = [("DEFAULT", each["opt"]) for each in conf._opts.values()]
    for name, group in conf._groups.items():
        listed += [(name, each["opt"]) for each in group._opts.values()]
    libraries = (
        *keystonemiddleware_opts.list_auth_token_opts(),
        *log_opts.list_opts(),
        *messaging_opts.list_opts(),
        *policy_opts.list_opts(),
    )
    for group, options in libraries:
        listed += [(str(getattr(group, "name", group) or "DEFAULT"), option) for option in options]
    known = set()
    for group_name, option in listed:
        known.add((group_name, option.dest))
        known.add((group_name, option.name.replace("-", "_")))
        known |= {
            (old.group or group_name, str(old.name or option.dest).replace("-", "_")) for old in option.deprecated_opts
        }
    # Credentials that the middleware's plug-in reads.
    credentials = [*loading.get_auth_common_conf_options(), *loading.get_auth_plugin_conf_options("password")]
    return known | {("keystone_authtoken", option.dest) for option in credentials}


__all__ = ["Ignored", "accepted", "check_values", "ignored"]

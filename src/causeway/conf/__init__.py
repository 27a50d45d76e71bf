"""Every option: names, groups and defaults as in nova.conf wherever the option exists there.

Each module exposes ``OPTS``, group name -> options. There is no global object: the start of a process makes one with `new_config`
and passes it on. Libraries register their own options (logs, message queues, policy, keystonemiddleware); the generated example
configuration shows those too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1 import loading
from oslo_config import cfg
from oslo_log import _options as log_opts
from oslo_log import log

from causeway.conf import (
    adopt,
    api,
    cinder,
    compute,
    conductor,
    consoles,
    database,
    drains,
    fault_injection,
    glance,
    key_manager,
    library_defaults,
    libvirt,
    live_migration,
    metadata,
    metrics,
    moves,
    neutron,
    notifications,
    placement,
    quota,
    rpc,
    scheduler,
    service_user,
    simulated,
)
from causeway.conf import keystone as keystone_group
from causeway.conf.checks import (
    Invalid,
    check_names,
    check_values,
    ignored,
    invalid_values,
    many_valued,
    names_read,
    of_library,
)

PROJECT = "causeway"
MODULES: tuple[ModuleType, ...] = (
    adopt,
    api,
    cinder,
    compute,
    conductor,
    consoles,
    database,
    drains,
    fault_injection,
    glance,
    key_manager,
    keystone_group,
    libvirt,
    live_migration,
    metadata,
    metrics,
    moves,
    neutron,
    notifications,
    placement,
    quota,
    rpc,
    scheduler,
    service_user,
    simulated,
)
# Groups with credentials of their own: auth_type names a keystoneauth plug-in, whose options are read from the group too.
AUTH_GROUPS = (
    "barbican_service_user",
    "cinder",
    "glance",
    "keystone",
    "neutron",
    "oslo_limit",
    "placement",
    "service_user",
    "vendordata_dynamic_auth",
)
DEFAULT = "DEFAULT"


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """(group, options) of all our options, in the order of the group names; also for oslo-config-generator."""
    groups: dict[str, list[cfg.Opt]] = {}
    for module in MODULES:
        for group, options in module.OPTS.items():
            groups.setdefault(group, []).extend(options)
    return sorted(groups.items(), key=lambda item: (item[0] != DEFAULT, item[0]))


def list_sample_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """`list_opts`, with the options of the usual plug-in (passwords) in the groups with credentials."""
    listed = list_opts()
    password = loading.get_auth_plugin_conf_options("password")
    return [
        (group, [*options, *_unknown(password, options)] if group in AUTH_GROUPS else options)
        for group, options in listed
    ]


def register(conf: cfg.ConfigOpts) -> None:
    """Registers all options with ``conf``. May be repeated."""
    for group, options in list_opts():
        conf.register_opts(options, group=None if group == DEFAULT else group)


def new_config(
    argv: Sequence[str] | None = None, config_files: Iterable[str | Path] = (), **overrides: Any
) -> cfg.ConfigOpts:
    """The options of one process: defaults, then files, then ``argv`` (None: no arguments), then overrides.

    An override is an option of [DEFAULT], or a mapping for a group: ``new_config(host="h", api={"max_limit": 10})``.
    Raises oslo.config's ConfigFilesNotFoundError, ConfigFileParseError, NoSuchOptError, and ConfigFileValueError for an invalid
    value of any option.
    """
    conf = cfg.ConfigOpts()
    register(conf)
    log.register_options(conf)
    library_defaults.set_log_defaults(conf)
    _read_files(conf, argv or (), config_files)
    for group in AUTH_GROUPS:
        _register_plugin(conf, group)
    groups = {group for group, _options in list_opts()} - {DEFAULT}
    for name, value in overrides.items():
        if name not in groups:
            conf.set_override(name, value)
            continue
        if "auth_type" in value:
            conf.set_override("auth_type", value["auth_type"], group=name)
            _register_plugin(conf, name)
        for option, setting in value.items():
            conf.set_override(option, setting, group=name)
    check_values(conf, list_opts())
    check_names(conf.instance_name_template)
    return conf


def _read_files(conf: cfg.ConfigOpts, argv: Sequence[str], config_files: Iterable[str | Path]) -> None:
    conf(
        list(argv),
        project=PROJECT,
        default_config_files=[str(path) for path in config_files],
        default_config_dirs=[],
    )


def read_unchecked(config_files: Iterable[str | Path]) -> tuple[cfg.ConfigOpts, list[Invalid]]:
    """The options in files that may have any values, and those with values that `new_config` would refuse: all of them.

    Raises oslo.config's errors for files that are not there or can't be parsed.
    """
    conf = cfg.ConfigOpts()
    register(conf)
    # Not as arguments of a command: their parser would end the process.
    of_logs = [option for _group, options in log_opts.list_opts() for option in options]
    conf.register_opts(of_logs)
    _read_files(conf, (), config_files)
    invalid = list(invalid_values(conf, [*list_opts(), (DEFAULT, of_logs)]))
    for group in AUTH_GROUPS:
        try:
            _register_plugin(conf, group)
        except ValueError:
            section = conf[group].auth_section or group
            invalid.append(Invalid(section, "auth_type", "keystoneauth has no such plug-in here."))
        except (cfg.TemplateSubstitutionError, cfg.NoSuchOptError):
            # It is in the list already.
            continue
    if not any((each.group, each.option) == (DEFAULT, "instance_name_template") for each in invalid):
        try:
            check_names(conf.instance_name_template)
        except cfg.ConfigFileValueError:
            accepted_names = (
                "Accepted: a text with %(uuid)s, or with one %x or %d, that names every server differently."
            )
            invalid.append(Invalid(DEFAULT, "instance_name_template", accepted_names))
    return conf, invalid


def _register_plugin(conf: cfg.ConfigOpts, group: str) -> None:
    section = conf[group].auth_section or group
    plugin = conf[section].auth_type if section in conf else None
    if plugin is None:
        return
    try:
        conf.register_opts(loading.get_auth_plugin_conf_options(plugin), group=section)
    except keystone_errors.NoMatchingPlugin as error:
        raise cfg.ConfigFileValueError(f"[{section}] auth_type: {error}") from error


def _unknown(options: list[cfg.Opt], known: list[cfg.Opt]) -> list[cfg.Opt]:
    names = {option.dest for option in known}
    return [option for option in options if option.dest not in names]


__all__ = [
    "AUTH_GROUPS",
    "Invalid",
    "ignored",
    "list_opts",
    "list_sample_opts",
    "many_valued",
    "names_read",
    "new_config",
    "of_library",
    "read_unchecked",
    "register",
]

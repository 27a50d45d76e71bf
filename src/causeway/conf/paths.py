"""Options that name files and folders: what is named must be there, or the process does not start.

A policy file, a certificate or a folder of keys that is not found would otherwise be taken for one that was not given, and the
cloud would run with other rights than its operator believes. A relative path is relative to the folder in which the process was
started; policy files are looked for beside the configuration files too, as oslo.policy does. From then on the option has the
absolute path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from oslo_config import cfg
from oslo_messaging import opts as messaging_opts
from oslo_policy import opts as policy_opts

from causeway.conf import tokens


class Named(Enum):
    """What a path option names."""

    FILE = "file"
    FOLDER = "folder"
    EITHER = "file or folder"
    #: the service makes it
    MADE = "file or folder to be made"
    #: the same, at a place that must not depend on where the process was started: a relative path is refused
    LASTING = "folder to be made that lasts"


@dataclass(frozen=True)
class PathOption:
    group: str
    name: str
    named: Named


_TLS = (
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
PATHS = (
    # First: others are below it.
    PathOption("DEFAULT", "state_path", Named.MADE),
    PathOption("DEFAULT", "instances_path", Named.LASTING),
    PathOption("DEFAULT", "disk_transfer_pki_dir", Named.FOLDER),
    PathOption("DEFAULT", "log_config_append", Named.FILE),
    PathOption("DEFAULT", "log_dir", Named.MADE),
    PathOption("DEFAULT", "log_file", Named.MADE),
    # A folder that is not there would be taken for one in which no Nova was.
    PathOption("adopt", "nova_state_path", Named.FOLDER),
    PathOption("adopt", "nova_config_dirs", Named.FOLDER),
    PathOption("api", "vendordata_jsonfile_path", Named.FILE),
    PathOption("api", "vendordata_dynamic_ssl_certfile", Named.EITHER),
    PathOption("barbican", "verify_ssl_path", Named.EITHER),
    PathOption("console", "novnc_path", Named.FOLDER),
    # Whoever injects faults writes it when they want them.
    PathOption("fault_injection", "file", Named.MADE),
    PathOption("libvirt", "nfs_mount_point_base", Named.LASTING),
    PathOption("libvirt", "shared_disks_path", Named.FOLDER),
    PathOption("oslo_policy", "policy_file", Named.FILE),
    PathOption("oslo_policy", "policy_dirs", Named.FOLDER),
    PathOption("oslo_messaging_rabbit", "ssl_ca_file", Named.FILE),
    PathOption("oslo_messaging_rabbit", "ssl_cert_file", Named.FILE),
    PathOption("oslo_messaging_rabbit", "ssl_key_file", Named.FILE),
    *(
        PathOption("oslo_policy", f"remote_ssl_{name}_file", Named.FILE)
        for name in ("ca_crt", "client_crt", "client_key")
    ),
    *(
        PathOption("keystone_authtoken", f"memcache_tls_{name}", Named.FILE)
        for name in ("cafile", "certfile", "keyfile")
    ),
    PathOption("rpc_signatures", "private_key", Named.FILE),
    PathOption("rpc_signatures", "trusted_keys", Named.FOLDER),
    *(
        PathOption(group, name, Named.FILE)
        for group in (*_TLS, "keystone_authtoken")
        for name in ("cafile", "certfile", "keyfile")
    ),
)
#: names that look like paths' and are none
NO_PATHS = frozenset({("conductor", "credentials_key"), ("quota", "injected_files")})
_UNSET = (cfg.Locations.opt_default, cfg.Locations.set_default)


class PathMissing(cfg.ConfigFileValueError):  # type: ignore[misc]
    """An option names what is not there."""


class PathRelative(cfg.ConfigFileValueError):  # type: ignore[misc]
    """An option names a folder that would be another one if the process were started elsewhere."""


def resolve(conf: cfg.ConfigOpts, *, with_tokens: bool = True) -> None:
    """Replaces relative paths that somebody has set by absolute ones. Raises PathMissing for what is not there, PathRelative.

    ``with_tokens``: also those by which tokens are validated.
    """
    _register_libraries(conf, with_tokens=with_tokens)
    for option in PATHS:
        if option.group == tokens.GROUP and not with_tokens:
            continue
        values = conf if option.group == "DEFAULT" else conf.get(option.group)
        if values is None or not _is_set(conf, option) or not values[option.name]:
            continue
        given = values[option.name]
        found = [_resolved(conf, option, each) for each in (given if isinstance(given, list) else [given])]
        wanted = found if isinstance(given, list) else found[0]
        if wanted != given:
            conf.set_override(option.name, wanted, group=None if option.group == "DEFAULT" else option.group)


def _register_libraries(conf: cfg.ConfigOpts, *, with_tokens: bool) -> None:
    """Registers the options of libraries, which do that themselves only when they are first used."""
    policy_opts.set_defaults(conf)
    for group, options in (*(tokens.options() if with_tokens else ()), *_rabbit()):
        conf.register_opts(options, group=group)


def _rabbit() -> list[tuple[str, list[cfg.Opt]]]:
    listed = ((str(getattr(group, "name", group)), options) for group, options in messaging_opts.list_opts())
    return [(group, options) for group, options in listed if group == "oslo_messaging_rabbit"]


def _is_set(conf: cfg.ConfigOpts, option: PathOption) -> bool:
    group = None if option.group == "DEFAULT" else option.group
    try:
        found = conf.get_location(option.name, group)
    except (cfg.NoSuchOptError, cfg.NoSuchGroupError):
        return False
    # No location: it has no value.
    return found is not None and found.location not in _UNSET


def is_relative(given: str) -> bool:
    return not Path(given).expanduser().is_absolute()


def _resolved(conf: cfg.ConfigOpts, option: PathOption, given: str) -> str:
    candidates = list(_candidates(conf, option, given))
    if option.named is Named.LASTING:
        if is_relative(given):
            raise PathRelative(
                f"[{option.group}] {option.name} = {given} is a relative path: guests would have their files elsewhere if the"
                " process were started in another folder. Write an absolute one."
            )
        return str(candidates[0])
    if option.named is Named.MADE:
        return str(candidates[0])
    for path in candidates:
        if path.exists():
            if (option.named is Named.FILE and not path.is_file()) or (
                option.named is Named.FOLDER and not path.is_dir()
            ):
                raise PathMissing(f"[{option.group}] {option.name}: {path} is no {option.named.value}.")
            return str(path)
    looked = " or ".join(dict.fromkeys(str(path) for path in candidates))
    raise PathMissing(
        f"[{option.group}] {option.name} = {given}: there is no {option.named.value} {looked}. Make it, or correct the option."
    )


def _candidates(conf: cfg.ConfigOpts, option: PathOption, given: str) -> Iterator[Path]:
    path = Path(given).expanduser()
    yield path if path.is_absolute() else Path.cwd() / path
    if option.group == "oslo_policy" and not path.is_absolute():
        beside = conf.find_file(given)
        if beside is not None:
            yield Path(beside).resolve()


__all__ = ["NO_PATHS", "PATHS", "Named", "PathMissing", "PathOption", "PathRelative", "is_relative", "resolve"]

"""Options for calls to a service, with keystoneauth's names, and [keystone]: the identity service."""

from __future__ import annotations

from keystoneauth1 import loading
from oslo_config import cfg
from oslo_config.cfg import Opt

TIMEOUT_SECONDS = 60.0
# The adapter options of keystoneauth that our calls use.
USED_OPTIONS = ("service_type", "valid_interfaces", "region_name", "endpoint_override")
SESSION = ("cafile", "certfile", "keyfile", "insecure", "timeout")


def session_options() -> list[Opt]:
    """Options for connections: certificates and the timeout."""
    options = [option for option in loading.get_session_conf_options() if option.dest in SESSION]
    for option in options:
        if option.dest == "timeout":
            option.default = TIMEOUT_SECONDS
            option.help = "Seconds without a byte of the answer after which a call has failed."
    return options


def service_options(service_type: str) -> list[Opt]:
    """Credentials, connection and endpoint of one service."""
    options = [*loading.get_auth_common_conf_options(), *session_options()]
    for option in loading.get_adapter_conf_options(include_deprecated=False):
        if option.dest not in USED_OPTIONS:
            continue
        if option.dest == "service_type":
            option.default = service_type
        elif option.dest == "valid_interfaces":
            option.default = ["internal", "public"]
        options.append(option)
    return options


def retries_option(name: str = "http_retries") -> Opt:
    return cfg.IntOpt(
        name,
        default=3,
        min=0,
        help="How often a call that may be repeated is tried again when the connection breaks or the service fails.",
    )


OPTS: dict[str, list[Opt]] = {"keystone": service_options("identity")}

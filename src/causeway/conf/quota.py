"""[quota]: limits of projects, and where they come from; [oslo_limit]: limits in the identity service."""

from __future__ import annotations

import re

import os_resource_classes
from keystoneauth1 import loading
from oslo_config import cfg, types
from oslo_config.cfg import Opt

from causeway.conf import keystone

# Nova's names: they are in configuration files.
DB = "nova.quota.DbQuotaDriver"
NOOP = "nova.quota.NoopQuotaDriver"
UNIFIED = "nova.quota.UnifiedLimitsDriver"

SERVERS = "servers"
OF_CLASS = "class:"
# Resource in quota sets -> in unified limits: those that requests are checked for, one by one.
LOCAL = {
    "metadata_items": "server_metadata_items",
    "injected_files": "server_injected_files",
    "injected_file_content_bytes": "server_injected_file_content_bytes",
    "injected_file_path_bytes": "server_injected_file_path_bytes",
    "key_pairs": "server_key_pairs",
    "server_groups": "server_groups",
    "server_group_members": "server_group_members",
}
REQUIRE, IGNORE = "require", "ignore"
_CUSTOM = re.compile(r"CUSTOM_[A-Z0-9_]+")


class _ResourceName(types.String):  # type: ignore[misc]
    """A resource of unified limits."""

    def __call__(self, value: object) -> str:
        name = str(super().__call__(value))
        of_class = name.removeprefix(OF_CLASS) if name.startswith(OF_CLASS) else ""
        if name == SERVERS or name in LOCAL.values():
            return name
        if of_class in os_resource_classes.STANDARDS or _CUSTOM.fullmatch(of_class):
            return name
        raise ValueError(f"{name} is not a valid resource class name, nor {SERVERS}, {', '.join(LOCAL.values())}")


def _limit(name: str, default: int, what: str) -> Opt:
    return cfg.IntOpt(name, default=default, min=-1, help=f"{what}; -1: no limit.")


def _oslo_limit() -> list[Opt]:
    """Options of oslo.limit: credentials, connection, and the endpoint whose limits apply."""
    options = [
        *loading.get_auth_common_conf_options(),
        *loading.get_session_conf_options(),
        *loading.get_adapter_conf_options(include_deprecated=False),
    ]
    for option in options:
        if option.dest == "timeout":
            option.default = keystone.TIMEOUT_SECONDS
            option.help = "Seconds without a byte of the answer after which a call has failed."
    return [
        *options,
        cfg.StrOpt(
            "endpoint_id",
            help="The endpoint of this service in the catalog. Limits are registered for its service and region. If not set, the"
            " endpoint is looked up by the service's type, name and interface.",
        ),
        cfg.StrOpt("endpoint_service_type", default="compute", help="The service's type, to find the endpoint."),
        cfg.StrOpt("endpoint_service_name", help="The service's name, to find the endpoint."),
        cfg.StrOpt("endpoint_region_name", help="The endpoint's region; needed if there are several."),
        cfg.StrOpt(
            "endpoint_interface",
            default="public",
            choices=["public", "publicURL", "internal", "internalURL", "admin", "adminURL"],
            help="The endpoint's interface, to find the endpoint.",
        ),
    ]


OPTS: dict[str, list[Opt]] = {
    "quota": [
        cfg.StrOpt(
            "driver",
            default=DB,
            choices=[
                (DB, "limits are stored here: these options, quota classes, projects and users"),
                (
                    UNIFIED,
                    "limits are kept by the identity service (unified limits, [oslo_limit]), and usage is Placement's",
                ),
                (NOOP, "nothing is limited"),
            ],
            help="Where the limits of projects come from.",
        ),
        cfg.BoolOpt(
            "count_usage_from_placement",
            default=False,
            help="With limits that are stored here: count cores and memory as Placement does, and servers by their mappings,"
            " including those of cells that are down. A server that is being resized or migrated then counts twice until it is"
            " confirmed or reverted, and one that is shelved and offloaded counts no cores and no memory.",
        ),
        cfg.BoolOpt(
            "recheck_quota",
            default=True,
            help="Compare requests that are made at the same moment with one another, so that together they pass no limit of"
            " servers, cores, memory and resource classes, server groups and their members, and key pairs. This costs one SQL"
            " statement for each request for servers. If false, such requests may pass a limit together.",
        ),
        cfg.StrOpt(
            "unified_limits_resource_strategy",
            default=REQUIRE,
            choices=[
                (
                    REQUIRE,
                    "those of unified_limits_resource_list are refused without a registered limit, others are not limited",
                ),
                (IGNORE, "those of unified_limits_resource_list are not limited without one, others are refused"),
            ],
            help="How resources without a registered limit in the identity service are treated.",
        ),
        cfg.ListOpt(
            "unified_limits_resource_list",
            item_type=_ResourceName(),
            default=[SERVERS],
            help="The resources for unified_limits_resource_strategy: servers, class:VCPU, class:MEMORY_MB, ...",
        ),
        _limit("instances", 10, "Servers of a project"),
        _limit("cores", 20, "vCPUs of a project"),
        _limit("ram", 50 * 1024, "MiB of memory of a project"),
        _limit("metadata_items", 128, "Metadata items of a server"),
        _limit("injected_files", 5, "Personality files of a server"),
        _limit("injected_file_content_bytes", 10 * 1024, "Bytes of a personality file"),
        _limit("injected_file_path_length", 255, "Length of a personality file's path"),
        _limit("key_pairs", 100, "Key pairs of a user"),
        _limit("server_groups", 10, "Server groups of a project"),
        _limit("server_group_members", 10, "Servers of a server group"),
    ],
    "oslo_limit": _oslo_limit(),
    "workarounds": [
        cfg.BoolOpt(
            "unified_limits_count_pcpu_as_vcpu",
            default=False,
            help="With unified limits: dedicated CPUs (PCPU) of flavors that do not request resources:PCPU themselves count as"
            " class:VCPU, as cores do with limits that are stored here.",
        )
    ],
}

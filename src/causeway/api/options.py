"""The options that the API reads. Names and defaults are the field's (nova.conf)."""

from __future__ import annotations

from oslo_config import cfg

OPTIONS: dict[str, list[cfg.Opt]] = {
    "api": [
        cfg.StrOpt(
            "auth_strategy",
            default="keystone",
            choices=["keystone", "noauth2"],
            help="Who says who calls: keystonemiddleware, or the caller (`X-Auth-Token: user:project`; for tests).",
        ),
        cfg.IntOpt("max_limit", default=1000, min=0, help="The largest page of a list, and the default one."),
        cfg.StrOpt("compute_link_prefix", help="What links to compute resources begin with, behind a proxy."),
        cfg.StrOpt("glance_link_prefix", help="What links to images begin with, behind a proxy."),
        cfg.BoolOpt("list_records_by_skipping_down_cells", default=True, help="Leave out cells that do not answer."),
    ],
    "DEFAULT": [
        cfg.StrOpt(
            "default_availability_zone", default="nova", help="The zone of hosts that are in no aggregate with one."
        ),
        cfg.StrOpt("internal_service_availability_zone", default="internal", help="The zone of services but computes."),
        cfg.IntOpt(
            "service_down_time", default=60, help="Seconds without a report after which a service counts as down."
        ),
    ],
    "quota": [
        cfg.IntOpt("instances", default=10, min=-1, help="Servers of a project; -1: no limit."),
        cfg.IntOpt("cores", default=20, min=-1, help="vCPUs of a project; -1: no limit."),
        cfg.IntOpt("ram", default=51200, min=-1, help="MiB of memory of a project; -1: no limit."),
        cfg.IntOpt("metadata_items", default=128, min=-1, help="Metadata items of a server."),
        cfg.IntOpt("injected_files", default=5, min=-1, help="Personality files of a server."),
        cfg.IntOpt("injected_file_content_bytes", default=10 * 1024, min=-1, help="Bytes of a personality file."),
        cfg.IntOpt("injected_file_path_length", default=255, min=-1, help="Length of a personality file's path."),
        cfg.IntOpt("key_pairs", default=100, min=-1, help="Key pairs of a user."),
        cfg.IntOpt("server_groups", default=10, min=-1, help="Server groups of a project."),
        cfg.IntOpt("server_group_members", default=10, min=-1, help="Servers of a server group."),
        cfg.BoolOpt("recheck_quota", default=True, help="Check once more after something was made."),
    ],
}


def register(conf: cfg.ConfigOpts) -> None:
    """Makes the options known to ``conf``; those that are known already stay as they are."""
    for group, options in OPTIONS.items():
        known = conf if group == "DEFAULT" else getattr(conf, group, None)
        for option in options:
            if known is None or option.dest not in known:
                conf.register_opt(option, group=None if group == "DEFAULT" else group)
